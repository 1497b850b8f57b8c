"""A scikit-learn style estimator; every call of ``fit`` is a release and spends ε.

scikit-learn's searches and cross-validation fit clones behind the scenes. Nothing would count
their releases, so without a ledger clones are refused. Needs the extra ``sklearn``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from private_ate.api import estimate_ate
from private_ate.data.parse_values import label_of, numbers_of
from private_ate.domain import Categories, Domain, Interval, Outcome, Treatment
from private_ate.errors import ArgumentError, BudgetError, PrivateAteError
from private_ate.parameters import shared
from private_ate.release.metadata import Pair
from private_ate.release.release import Release

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_consistent_length, column_or_1d
    from sklearn.utils.validation import validate_data
except ImportError as cause:
    msg = "this module needs scikit-learn 1.6 or later: pip install 'private-ate[sklearn]'"
    raise ImportError(msg) from cause

__all__ = ["PrivateATE"]

Bounds = Pair | Sequence[Pair] | None
Label = str | int | float | bool


class PrivateATE(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """Average effects of a treatment with two or more arms, released with differential privacy.

    Without a ledger an object makes one release: fitting it again is refused, and so is every fit
    of a clone, which is what searches and cross-validation do. With a ledger each fit is charged.
    Give numeric arrays: scikit-learn's own checks of object arrays quote what they choke on. What
    a pipeline learns from the data before this step is not covered by the guarantee, unless it
    looks at columns that are public at the chosen level.

    Parameters
    ----------
    epsilon : str or float
        The budget of each fit.
    level : "label" or "sample"
        Whether outcomes alone are private or whole records.
    outcome_bounds : pair of float
        Declared bounds of the outcome.
    covariate_bounds : pair, or a pair per covariate, optional
        Declared bounds; needed at sample level.
    treatment_column : int, optional
        Column of X that holds the treatment, if ``fit`` is not given one.
    arms : sequence of labels, optional
        The treatment's classes, 2 to 20; 0 and 1 if not given.
    bins : sequence of float, optional
        The edges of a dose's bins, in place of ``arms``.
    reference : label, optional
        The arm that others are compared with; the first if not given.
    among : label, optional
        Effects among the units of this arm, instead of all.
    by : sequence of str, optional
        Subgroups as for ``estimate_ate``, of columns x0, x1 and so on: ``["x0<0.5"]``. Bounds of
        covariates must be declared. Their table is in ``release_.effects``.
    overall : bool
        With ``by``: pay half of ε for the effect of all units.
    design, method, confidence, rows_per_person, leave_out_undeclared
        As for ``estimate_ate``. X holds covariates alone and no ids of persons: how many rows a
        person may have is declared.
    ledger, dataset, dataset_version : str, optional
        A budget ledger that every fit is charged to, the data set's name in it and in the release,
        and what this state of the data is called.
    seed : int, optional
        For experiments only: the release then says that it guarantees nothing.

    Attributes
    ----------
    release_ : Release
        What may be shown to anybody.
    ate_, interval_ : float, pair or None
        The effect and its interval, from the release; a difference in means that was not adjusted
        for covariates where ``release_.estimand`` says "difference". Of several arms the last
        declared one against the reference.
    arms_, contrasts_ : tuple
        The arms of a release of more than two, and all pairs of arms with their intervals.
    """

    _is_clone: ClassVar[bool] = False
    _has_released = False

    def __init__(  # noqa: PLR0913  # scikit-learn wants every parameter here
        self,
        *,
        epsilon: str | float = "1.0",
        level: str = "sample",
        outcome_bounds: Pair | None = None,
        covariate_bounds: Bounds = None,
        treatment_column: int | None = None,
        arms: Sequence[Label] | None = None,
        bins: Sequence[float] | None = None,
        reference: Label | None = None,
        among: Label | None = None,
        by: Sequence[str] | None = None,
        overall: bool = False,
        design: str = "unknown",
        method: str = "auto",
        confidence: float | None = 0.95,
        rows_per_person: int = 1,
        leave_out_undeclared: bool = False,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        dataset_version: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.level = level
        self.outcome_bounds = outcome_bounds
        self.covariate_bounds = covariate_bounds
        self.treatment_column = treatment_column
        self.arms = arms
        self.bins = bins
        self.reference = reference
        self.among = among
        self.by = by
        self.overall = overall
        self.design = design
        self.method = method
        self.confidence = confidence
        self.rows_per_person = rows_per_person
        self.leave_out_undeclared = leave_out_undeclared
        self.ledger = ledger
        self.dataset = dataset
        self.dataset_version = dataset_version
        self.seed = seed

    def fit(self, X: object, y: object, treatment: object = None) -> PrivateATE:
        """Release the effect of a treatment on ``y``; spends ε, once unless a ledger counts.

        Parameters
        ----------
        X : array, shape (n, d)
            Covariates.
        y : array, shape (n,)
            Outcomes; missing and non-numeric ones count as the middle of the bounds.
        treatment : array, shape (n,), optional
            The arm of each unit: its label, or its dose if ``bins`` are given; without either 1
            for treated units and 0 for control. At label level any other entry is an error. Ask a
            pipeline for it with ``set_fit_request(treatment=True)``.
        """
        self._require_count()
        # Neither call looks at whether values are finite: an error that does would reveal some.
        matrix = validate_data(self, X, ensure_all_finite=False)
        if y is None:
            message = "PrivateATE requires y to be passed, but the target y is None"
            raise ArgumentError(message)
        outcome = _numbers(column_or_1d(y))
        covariates, arm = self._split(matrix, treatment)
        check_consistent_length(matrix, outcome, arm)
        columns = {f"x{index}": covariates[:, index] for index in range(covariates.shape[1])}
        schema = {"treatment": pl.String} if isinstance(arm, list) else None
        named = {"treatment": arm, "outcome": outcome, **columns}
        frame = pl.DataFrame(named, schema_overrides=schema)
        self.release_ = self._release(frame, list(columns))
        self.ate_ = self.release_.ate
        self.interval_ = self.release_.interval
        self.arms_ = self.release_.arms
        self.contrasts_ = self.release_.contrasts
        return self

    def __sklearn_clone__(self) -> PrivateATE:
        clone: PrivateATE = super().__sklearn_clone__()
        # The type carries the mark, because it alone survives parameters that are set later and
        # the journey to another process.
        clone.__class__ = _Clone
        return clone

    def _release(self, frame: pl.DataFrame, covariates: list[str]) -> Release:
        """Make the release; an error that is not one of ours counts as one."""
        before, self._has_released = self._has_released, True
        try:
            names = [one.name for one in shared("sklearn", "estimate_ate")]
            asked: dict[str, Any] = {name: getattr(self, name) for name in names}
            asked["by"] = () if self.by is None else self.by
            domain = self._domain(covariates)
            return estimate_ate(frame, domain=domain, covariates=covariates, **asked)
        except PrivateAteError:
            self._has_released = before
            raise

    def _require_count(self) -> None:
        """Refuse a release that nothing counts: of a clone, or the second of an object."""
        promises_nothing = self.seed is not None
        if promises_nothing or self.ledger is not None:
            return
        if self._is_clone or self._has_released:
            message = (
                "every fit is a release and spends ε: without a ledger an object is fitted once, "
                "and a clone, as searches and cross-validation make, not at all; give ledger= and "
                "dataset= to have each fit charged"
            )
            raise BudgetError(message)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  # scikit-learn's protocol
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags

    def _split(
        self, matrix: npt.NDArray[Any], treatment: object
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | list[str | None]]:
        """Return covariates and treatment, which is an argument or a column of X.

        Declared labels are compared as texts, doses and the usual 1 and 0 as numbers.
        """
        values = matrix.astype(np.float64)
        if treatment is not None:
            given = column_or_1d(treatment)
            return values, _numbers(given) if self.arms is None else _labels(given)
        if self.treatment_column is None:
            message = "give fit a treatment, or name the column of X that holds it"
            raise ArgumentError(message)
        return np.delete(values, self.treatment_column, axis=1), values[:, self.treatment_column]

    def _domain(self, names: list[str]) -> Domain:
        bounds = None if self.outcome_bounds is None else Interval(*self.outcome_bounds)
        arms = None if self.arms is None else tuple(self.arms)
        bins = None if self.bins is None else tuple(self.bins)
        # Without arms or bins fit takes 1 and 0, as its documentation says.
        treatment = Treatment("treatment", 1, 0, arms=arms, bins=bins, reference=self.reference)
        return Domain(treatment, Outcome("outcome", bounds), self._covariates(names))

    def _covariates(self, names: list[str]) -> dict[str, Interval | Categories]:
        declared = self.covariate_bounds
        if declared is None:
            return {}
        if np.ndim(cast("Any", declared)) == 1:
            return {name: Interval(*cast("Pair", declared)) for name in names}
        pairs = cast("Sequence[Pair]", declared)
        if len(pairs) != len(names):
            message = f"covariate_bounds declares {len(pairs)} columns, X has {len(names)}"
            raise ArgumentError(message)
        return {name: Interval(*pair) for name, pair in zip(names, pairs, strict=True)}


class _Clone(PrivateATE):
    """What scikit-learn cloned: it makes releases only where they are counted or void."""

    _is_clone: ClassVar[bool] = True


_Clone.__name__ = PrivateATE.__name__  # what it shows; pickles go by the qualified name


def _numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return numbers; what is none becomes a missing value, one by one and without a word."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    return numbers_of(values)


def _labels(values: npt.NDArray[Any]) -> list[str | None]:
    """Return entries as labels are compared; what is none becomes a missing one, without a word."""
    return [label_of(entry) for entry in values.tolist()]
