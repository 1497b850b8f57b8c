"""A DoWhy estimator: ``method_name="backdoor.private_ate.dowhy.PrivateATE"``.

DoWhy refits estimators behind the scenes. Where the rows of a refit are drawn with replacement,
permuted, or changed by what other rows hold, one person is in several of them and no ε covers that:
bootstraps, significance tests and all refuters but one are refused always. The data subset refuter
uses some of the rows as they are; it spends ε again and needs a ledger to count. Needs the extra
``dowhy``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

from private_ate.api import estimate_ate
from private_ate.data.parse_values import label_of
from private_ate.domain import Domain, Treatment, label_text, require_one_outcome
from private_ate.effects import standard_error
from private_ate.errors import ArgumentError, BudgetError
from private_ate.parameters import Design, Estimand, parameters_of
from private_ate.privacy.levels import Level
from private_ate.release.metadata import Pair
from private_ate.release.release import Release
from private_ate.report.phrasing import estimand_name

try:
    from dowhy.causal_estimator import CausalEstimate, CausalEstimator
except ImportError as cause:
    msg = "this module needs DoWhy: pip install 'private-ate[dowhy]'"
    raise ImportError(msg) from cause

__all__ = ["PrivateATE"]

# The refuter whose rows are persons' own rows, each at most once, in the columns they had.
_SOUND_REFUTER: Final = "dowhy.causal_refuters.data_subset_refuter"


class PrivateATE(CausalEstimator):  # type: ignore[misc]  # DoWhy has no annotations
    """Average treatment effect released with differential privacy, with its own interval.

    Parameters go into DoWhy's ``method_params``. ``fit`` makes the one release and spends ε;
    everything else reads it. Of more than two arms DoWhy's ``treatment_value`` and
    ``control_value`` pick the contrast, any of them for the one ε: ask again with
    ``fit_estimator=False``. The estimate holds no data, but DoWhy's ``CausalModel`` keeps the
    whole frame: never save or send the model.

    Parameters
    ----------
    level, epsilon, domain, method, estimand, among, design, confidence, options
        As for ``estimate_ate``. The domain names treatment and outcome; the covariates are the
        back-door variables that DoWhy identified.
    rows_per_person, person
        As for ``estimate_ate``.
    leave_out_undeclared : bool
        As for ``estimate_ate``, at label level.
    by, overall
        As for ``estimate_ate``: subgroups, whose table is in ``release``. DoWhy's estimate is that
        of all units; its ``effect_modifiers`` make none.
    ledger, dataset, dataset_version : str, optional
        The path or URL of a ledger, the data set's name in it and what this state of the data is
        called. With a ledger, DoWhy's ``data_subset_refuter`` is allowed as long as the budget
        lasts.
    """

    def __init__(  # noqa: PLR0913  # one keyword per question, and DoWhy's own
        self,
        identified_estimand: Any,  # noqa: ANN401  # DoWhy's
        *,
        level: Level,
        epsilon: str | float | Fraction | Decimal,
        domain: Domain,
        method: str = "auto",
        estimand: Estimand = "ate",
        among: str | None = None,
        design: Design = "unknown",
        confidence: float | None = 0.95,
        rows_per_person: int = 1,
        person: str | None = None,
        leave_out_undeclared: bool = False,
        by: str | Sequence[str] = (),
        overall: bool = False,
        options: object | None = None,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        dataset_version: str | None = None,
        test_significance: bool | str = False,
        evaluate_effect_strength: bool = False,
        confidence_intervals: bool | str = False,
        **_: Any,  # noqa: ANN401  # DoWhy passes the estimator's name again
    ) -> None:
        given = dict(locals())
        if evaluate_effect_strength:
            message = "the strength of effect uses an estimate without noise; leave it out"
            raise ArgumentError(message)
        if test_significance:
            _refuse_resampling("a significance test")
        if confidence_intervals == "bootstrap":
            _refuse_resampling("a bootstrap")
        super().__init__(
            identified_estimand,
            test_significance=False,
            confidence_intervals=confidence_intervals,
            confidence_level=confidence or 0.95,
            need_conditional_estimates=False,
        )
        self._request = {one.name: given[one.name] for one in parameters_of("dowhy")}
        del self._request["ledger"]
        self._ledger = None if ledger is None else str(ledger)
        # What DoWhy's refits ask an estimator for.
        self._effect_modifier_names: list[str] = []
        self._target_units = estimand
        self._treatment_value, self._control_value = (
            label_text(domain.treatment.treated),
            label_text(domain.treatment.control),
        )
        self.release: Release | None = None

    def fit(self, data: object, effect_modifier_names: object = None, **_: object) -> PrivateATE:
        """Release the effect; spends ε. A second fit, of this estimator or a copy, needs a ledger.

        Effect modifiers are not used: the effect is an average.
        """
        del effect_modifier_names
        if self.release is not None:
            self._require_ledger("fitting again")
            # Row labels, not records: pandas keeps them when rows are drawn again.
            if not getattr(getattr(data, "index", None), "is_unique", True):
                _refuse_resampling("fitting again on repeated row labels")
        estimand = self._target_estimand
        domain: Domain = self._request["domain"]
        require_one_outcome(domain, "a DoWhy estimator")
        for role, names, declared in (
            ("treatment", estimand.treatment_variable, domain.treatment.column),
            ("outcome", estimand.outcome_variable, domain.outcome.column),
        ):
            if list(names) != [declared]:
                message = f"the model's {role} is {list(names)}, the domain's is {declared!r}"
                raise ArgumentError(message)
        account: dict[str, Any] = {}
        if self._ledger is not None:
            account = {"ledger": self._ledger}
        self.release = estimate_ate(
            data,
            covariates=[str(name) for name in estimand.get_backdoor_variables()],
            **self._request,
            **account,
        )
        return self

    def get_new_estimator_object(self, *arguments: object, **options: object) -> PrivateATE:
        """Return a copy for a refit, to the one refuter that leaves persons' rows as they are.

        DoWhy says that it copies but not what for, so the module that asks is looked up.
        """
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        if caller is None or caller.f_globals.get("__name__") != _SOUND_REFUTER:
            _refuse_resampling("this refutation")
        self._require_ledger("a refutation")
        copied: PrivateATE = super().get_new_estimator_object(*arguments, **options)
        return copied

    def estimate_effect(
        self,
        data: object = None,
        treatment_value: object = 1,
        control_value: object = 0,
        target_units: object = None,
        **_: object,
    ) -> Any:  # noqa: ANN401  # DoWhy's
        """Return a contrast of the release as DoWhy's estimate; reads no data, spends nothing."""
        del data
        release = self._released()
        self._require_units(target_units)
        arm, against = self._arms(treatment_value, control_value)
        domain: Domain = self._request["domain"]
        estimate = CausalEstimate(
            data=None,  # DoWhy would keep it
            treatment_name=[domain.treatment.column],
            outcome_name=[domain.outcome.column],
            estimate=release.contrast(arm, against).effect,
            target_estimand=self._target_estimand,
            realized_estimand_expr=self.construct_symbolic_estimator(self._target_estimand),
            control_value=control_value,
            treatment_value=treatment_value,
            release=release,
        )
        self._treatment_value, self._control_value = arm, against
        # A copy of its own: the next estimate of this release may be of another contrast.
        estimate.add_estimator(copy.copy(self))
        return estimate

    def construct_symbolic_estimator(self, estimand: object) -> str:
        """Say in a line what was estimated."""
        del estimand
        release = self._released()
        return f"{estimand_name(release)}; private-ate, {release.method}, {release.guarantee}"

    def estimate_confidence_intervals(
        self,
        data: object,
        estimate_value: float,
        confidence_level: float | None = None,
        method: object = None,
        **options: object,
    ) -> Pair | None:
        """Return the release's own interval; a bootstrap is refused."""
        del data, estimate_value, options
        if method == "bootstrap":
            _refuse_resampling("a bootstrap")
        release = self._released()
        paid = release.facts.confidence
        if confidence_level is not None and abs(confidence_level - paid) > 1e-9:
            message = f"the release paid for an interval of {paid:g}; ask for that confidence"
            raise ArgumentError(message)
        return release.contrast(self._treatment_value, self._control_value).interval

    def estimate_std_error(
        self, data: object = None, method: object = None, **options: object
    ) -> float | None:
        """Return the standard error behind the release's interval; a bootstrap is refused."""
        del data, options
        if method == "bootstrap":
            _refuse_resampling("a bootstrap")
        return standard_error(
            self._released(), arm=self._treatment_value, against=self._control_value
        )

    def test_significance(self, *arguments: object, **options: object) -> NoReturn:
        """Refuse: DoWhy tests by permuting outcomes among persons."""
        del arguments, options
        _refuse_resampling("a significance test")

    def _released(self) -> Release:
        if self.release is None:
            message = "fit the estimator first"
            raise ArgumentError(message)
        return self.release

    def _require_ledger(self, what: str) -> None:
        if self._ledger is None:
            message = (
                f"{what} makes DoWhy refit, and each refit spends ε again; "
                "give ledger= and dataset= in method_params to have it counted"
            )
            raise BudgetError(message)

    def _arms(self, treated: object, control: object) -> tuple[str, str]:
        """Return the arms to compare; refuse those that the release does not compare."""
        treatment: Treatment = self._request["domain"].treatment
        asked = (_label(treated), _label(control))
        headline = (label_text(treatment.treated), label_text(treatment.control))
        if treatment.size > 2 and asked[0] != asked[1] and set(asked) <= set(treatment.labels):
            return asked
        # DoWhy's defaults 1 and 0 stand for the headline unless both are declared arms.
        if asked in (headline, ("1", "0")):
            return headline
        message = f"the domain declares {headline[0]!r} against {headline[1]!r}"
        if treatment.size > 2:
            listed = ", ".join(map(repr, treatment.labels))
            message = f"treatment_value and control_value are two of the declared arms {listed}"
        raise ArgumentError(message)

    def _require_units(self, units: object) -> None:
        """Refuse other units than those the release speaks of."""
        if units not in (None, self._request["estimand"]):
            message = f"this release speaks of the {self._request['estimand']}; set estimand"
            raise ArgumentError(message)


def _label(value: object) -> str:
    """Return a value as labels are written; what is no label matches none."""
    return label_of(value) or ""


def _refuse_resampling(what: str) -> NoReturn:
    message = (
        f"{what} refits on rows that are drawn again, mixed among persons or given new columns, "
        "which no charge covers, so it is refused with or without a ledger; read the release's "
        "own interval, or charge data_subset_refuter to a ledger"
    )
    raise ArgumentError(message)
