"""The methods: what each is called, promises and takes; none is loaded before it is used.

A new method is a file of its own and a record here. From the record follow the name of its options
in `private_ate`, the texts of ``--help``, the table in the documentation, its arm in the
experiments, its row in the benchmarks, its audit and its replay. Which arms, weights, subgroups,
outcomes and persons it takes is a row of `methods.composition`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from private_ate.arguments import shown
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_ate.effects.estimate import Estimate
    from private_ate.effects.quantities import Predict
    from private_ate.parameters import Estimand, Target
    from private_ate.privacy.noise import Noise
    from private_ate.request import Request
    from private_ate.study import MatchingStudy

    # Spends exactly the request's ε at the choke point and hands over an estimate.
    Estimator = Callable[[MatchingStudy, Request, Noise], Estimate]

__all__ = [
    "AUTO",
    "METHODS",
    "Method",
    "OrthogonalOptions",
    "is_default",
    "known_estimands",
    "method_named",
    "option_homes",
]


@dataclass(frozen=True, slots=True)
class Method:
    """A method by its public facts; its options and the function that runs it load on demand.

    Attributes
    ----------
    name : str
        What ``method=`` and ``--method`` call it.
    levels : tuple of levels
        Where it works.
    options_at : type or "module:name"
        The frozen dataclass of its own parameters; the module is relative to `private_ate`.
    run_at : Estimator or "module:name"
        The function that answers a request.
    predict_at : "module:name"
        The function that predicts what it would release; empty for a method without plans.
    promise : str
        What a release keeps, in words, with the options that change it.
    estimands : tuple of estimands
        What it can estimate.
    turns_to : tuple of estimands
        What a release may be about instead of what was asked, by what the method has released.
    after : str
        Whose method it is; empty for ours.
    adjusts : str
        What it adjusts for.
    page : str
        Where it is described, below docs/.
    figure : str
        Its name in figures; a method without one is no arm of the experiments.
    targets : tuple of targets
        Arms of the experiments that differ in what weights aim at.
    is_slow : bool
        Whether one release takes seconds to minutes.
    """

    name: str
    levels: tuple[Level, ...]
    options_at: type | str
    run_at: Estimator | str
    predict_at: str = ""
    promise: str = "pure ε"
    estimands: tuple[Estimand, ...] = ("ate",)
    turns_to: tuple[Estimand, ...] = ()
    after: str = ""
    adjusts: str = ""
    page: str = ""
    figure: str = ""
    targets: tuple[Target, ...] = ()
    is_slow: bool = False

    @property
    def options(self) -> type[Any]:
        """The class of the method's own parameters."""
        return cast("type[Any]", _loaded(self.options_at))

    @property
    def run(self) -> Estimator:
        """The function that spends the request's ε and hands over an estimate."""
        return cast("Estimator", _loaded(self.run_at))

    @property
    def predictor(self) -> Callable[[Any, Request], Predict]:
        """The function that predicts its quantities from `methods.assumptions.Assumptions`."""
        return cast("Callable[[Any, Request], Predict]", _loaded(self.predict_at))

    @property
    def is_baseline(self) -> bool:
        """Whether it is a competitor, kept for comparison."""
        return isinstance(self.run_at, str) and self.run_at.startswith("baselines.")


_SOLVED: Final = "pure ε, up to a chance of 5e-27 for each model that a solver fits"
_RECORDS: Final = (
    Method(
        "calibrated", ("label",),
        "methods.calibrated.options:CalibratedOptions",
        "methods.calibrated.method:estimate_calibrated",
        predict_at="methods.calibrated.method:predictor",
        estimands=("ate", "att", "atc", "ato"),
        adjusts="all covariates, by capped weights",
        page="explanation/matching.md", figure="ours", targets=("track", "balance"),
    ),
    Method(
        "published", ("label", "sample"),
        "methods.published.method:PublishedOptions",
        "methods.published.method:estimate_published",
        after="Yuan et al. 2026 (PrivATE)",
        adjusts="all covariates, by matching; at sample level hardly at all",
        page="explanation/matching.md", figure="PrivATE",
    ),
    Method(
        "blocks", ("sample",),
        "methods.blocks.plan:BlocksOptions",
        "methods.blocks.method:estimate_blocks",
        predict_at="methods.blocks.predict:predictor",
        estimands=("ate", "att", "atc", "ato"),
        adjusts="all covariates, inside blocks of rows, once n·ε suffices",
        page="explanation/blocks.md", figure="ours",
    ),
    Method(
        "difference_in_means", ("sample",),
        "baselines.difference_in_means:DifferenceInMeansOptions",
        "baselines.difference_in_means:estimate_difference_in_means",
        promise="(ε, δ), or ε in idealized numerics",
        after="–", adjusts="nothing",
        page="baselines/difference_in_means.md", figure="difference in means",
    ),
    Method(
        "ipw", ("sample",), "baselines.ipw:IpwOptions", "baselines.ipw:estimate_ipw",
        promise="(ε, δ), or pure ε",
        after="Lee, Gresele, Park, Muandet 2019", adjusts="all covariates, by weights",
        page="baselines/ipw.md", figure="IPW-PP",
    ),
    Method(
        "smooth_matching", ("sample",),
        "baselines.smooth_matching:SmoothMatchingOptions",
        "baselines.smooth_matching:estimate_smooth_matching",
        promise="(ε, δ), or ε in idealized numerics",
        after="Koga, Chaudhuri, Page 2024", adjusts="a few cells",
        page="baselines/smooth_matching.md", figure="SmoothDPM",
    ),
    Method(
        "doubly_robust", ("sample",),
        "baselines.doubly_robust:DoublyRobustOptions",
        "baselines.doubly_robust:estimate_doubly_robust",
        promise="(ε, δ); none as published",
        after="Schröder, Hartenstein, Feuerriegel 2025", adjusts="all covariates, twice",
        page="baselines/doubly_robust.md", figure="DPCI",
    ),
    Method(
        "fold_split", ("sample",),
        "baselines.fold_split:FoldSplitOptions",
        "baselines.fold_split:estimate_fold_split",
        promise="(ε, δ), or pure ε",
        after="Lebeda, Even, Bellet, Josse 2025", adjusts="all covariates, twice",
        page="baselines/fold_split.md",
    ),
    Method(
        "grouped", ("sample",),
        "baselines.grouped:GroupedOptions", "baselines.grouped:estimate_grouped",
        estimands=("ate", "att", "atc", "ato"),
        after="Guha, Reiter 2025", adjusts="all covariates, by weights within groups of rows",
        page="baselines/grouped.md", figure="grouped",
    ),
    Method(
        "balancing", ("sample",),
        "baselines.balancing:BalancingOptions", "baselines.balancing:estimate_balancing",
        promise=_SOLVED,
        estimands=("ate", "att", "atc", "ato"),
        after="Ohnishi, Awan 2024", adjusts="all covariates, by weights that balance them",
        page="baselines/balancing.md", figure="balancing",
    ),
    Method(
        "blocking", ("sample",),
        "baselines.blocking:BlockingOptions", "baselines.blocking:estimate_blocking",
        promise=_SOLVED,
        estimands=("ate", "att", "atc", "ato"),
        after="textbook", adjusts="all covariates, by blocks along a score",
        page="baselines/blocking.md", figure="blocking",
    ),
    Method(
        "aim", ("sample",), "baselines.aim:AimOptions", "baselines.aim:estimate_aim",
        promise="(ε, δ) from zCDP",
        after="McKenna et al. 2022", adjusts="what the model caught",
        page="baselines/aim.md", figure="AIM", is_slow=True,
    ),
    Method(
        "privsyn", ("sample",),
        "baselines.privsyn:PrivSynOptions", "baselines.privsyn:estimate_privsyn",
        promise="(ε, δ) from zCDP",
        after="Zhang et al. 2021", adjusts="what the marginals caught",
        page="baselines/privsyn.md", figure="PrivSyn", is_slow=True,
    ),
)  # fmt: skip
METHODS: Final = {method.name: method for method in _RECORDS}
AUTO: Final[dict[Level, str]] = {"label": "calibrated", "sample": "blocks"}
# Names of methods that were left out, and what to ask for instead; their releases are still read.
RETIRED: Final = {
    "orthogonal": "method 'orthogonal' is retired: 'blocks' does better, with as many arms; use "
    "method 'blocks'",
}


class OrthogonalOptions:
    """Options of a method that is no more; making them says what to use instead."""

    def __init__(self, **_: object) -> None:
        raise ArgumentError(RETIRED["orthogonal"], parameter="method")


def method_named(name: object, level: Level) -> Method:
    """Return the method of that name; "auto" is the default of the level."""
    if isinstance(name, str) and name in RETIRED:
        raise ArgumentError(RETIRED[name], parameter="method")
    if not isinstance(name, str) or name not in ("auto", *METHODS):
        msg = f"there is no method {shown(name)}; choose auto, {', '.join(METHODS)}"
        raise ArgumentError(msg)
    return METHODS[AUTO[level] if name == "auto" else name]


def is_default(name: str, level: str) -> bool:
    """Say whether "auto" would choose this method at this level."""
    return name == AUTO[cast("Level", level)]


def known_estimands() -> tuple[Estimand, ...]:
    """Return what any method can estimate, each once."""
    return tuple(dict.fromkeys(one for method in METHODS.values() for one in method.estimands))


def option_homes() -> dict[str, str]:
    """Return the module of every class of options by the name of the class; loads none."""
    places = (method.options_at for method in METHODS.values())
    pairs = (place.partition(":") for place in places if isinstance(place, str))
    return {name: home for home, _, name in pairs} | {"OrthogonalOptions": "methods.registry"}


def _loaded(place: object) -> object:
    """Return what a text such as "baselines.ipw:IpwOptions" names, or what is there already."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(f"private_ate.{module}"), name)
