"""What composes: which axes of a request each method takes, and which it does not take together.

`COMPOSES` has a row for each method and level that takes more than two arms, one outcome and one
row of each person; `_GAPS` has a sentence for each pair of axes that exclude one another. Both are
looked up before a record is read, and docs/methods.md is written from them: a method that learns
to compose changes its row here and nothing else.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeVar, cast

from private_ate.domain import Domain, Survival
from private_ate.domain.domain import Cells
from private_ate.errors import ArgumentError
from private_ate.methods.probability import probability_of
from private_ate.methods.registry import METHODS, Method, method_named
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.request import Request, options_for

__all__ = [
    "AXES",
    "COMPOSES",
    "Axis",
    "gap_sentences",
    "method_for",
    "options_of",
    "refuse_gaps",
    "takes",
]

Options = TypeVar("Options")
Axis = Literal[
    "arms", "among", "rows", "probability", "subgroups", "outcomes", "public missing",
    "private missing", "weights", "spark", "undeclared", "survival",
]  # fmt: skip
# What a request may ask for beside the axes of a row, and some axis excludes.
_Choice = Literal[
    "att", "atc", "ato", "track", "clipping", "one sd", "sd by column", "strata",
]  # fmt: skip

COMPOSES: Final[dict[tuple[str, Level], tuple[Axis, ...]]] = {
    ("calibrated", "label"): (
        "arms", "among", "rows", "probability", "subgroups", "outcomes", "public missing",
        "private missing", "weights", "spark", "undeclared", "survival",
    ),
    ("published", "label"): ("arms", "rows", "public missing"),
    ("published", "sample"): ("arms", "rows"),
    ("blocks", "sample"): (
        "arms", "rows", "probability", "subgroups", "outcomes", "public missing",
        "private missing", "weights", "spark", "undeclared", "survival",
    ),
}  # fmt: skip


class AxisText(NamedTuple):
    """An axis in the documentation's table, and the sentence of a method that does not take it."""

    title: str
    refusal: str
    parameter: str  # that would have to change


_MISSING: Final = (
    "method {method} cannot leave out {axis} outcomes at {level} level; declare the number that a "
    "missing outcome counts as"
)
AXES: Final[dict[Axis, AxisText]] = {
    "arms": AxisText(
        "three arms or more", "method {method} compares two arms; {arms} are declared", "method"
    ),
    "among": AxisText(
        "units of one of them",
        "method {method} compares {arms} arms among all units, not those of one", "among",
    ),
    "rows": AxisText(
        "several rows per person", "method {method} protects one row per person", "rows_per_person"
    ),
    "probability": AxisText(
        "known probability", "method {method} has no use for a known probability of treatment",
        "method",
    ),
    "subgroups": AxisText(
        "subgroups", "method {method} has no subgroups at {level} level", "method"
    ),
    "outcomes": AxisText(
        "several outcomes", "method {method} takes one outcome at a time at {level} level",
        "outcome",
    ),
    "public missing": AxisText("missing outcomes: public", _MISSING, "missing outcomes"),
    "private missing": AxisText("missing outcomes: private", _MISSING, "missing outcomes"),
    "weights": AxisText(
        "sampling weights", "method {method} takes no sampling weights at {level} level", "method"
    ),
    "spark": AxisText(
        "Spark",
        "method {method} does not run on Spark: matching puts all rows in order, which a cluster "
        "does not do", "",
    ),
    "undeclared": AxisText("leaves out rows of no declared arm", "", ""),
    "survival": AxisText(
        "time to an event", "method {method} takes no time to an event at {level} level", "method"
    ),
}  # fmt: skip


class _Gap(NamedTuple):
    """Two axes that exclude one another, at one level and of some methods; None and () for all."""

    pair: tuple[Axis, Axis | _Choice]
    parameter: str
    sentence: str
    level: Level | None = None
    methods: tuple[str, ...] = ()


_COUNTED: Final = "; declare them public, or the number that a missing outcome counts as"
_TREATED: Final = (
    "of three arms or more none is the treated one: name the arm whose units are meant: among='…'"
)
_GAPS: Final = (
    _Gap(("arms", "att"), "among", _TREATED),
    _Gap(("arms", "atc"), "among", _TREATED),
    _Gap(("arms", "ato"), "estimand", "the ATO compares two arms; more are declared"),
    _Gap(("arms", "probability"), "probability",
         "a known probability is that of one of two arms; leave it out for several"),
    _Gap(("arms", "private missing"), "missing outcomes",
         f"private missing outcomes can be left out of two arms only{_COUNTED}",
         "label", ("calibrated",)),
    _Gap(("weights", "track"), "target",
         "target 'track' follows matching, which takes no sampling weights; use 'balance'"),
    _Gap(("outcomes", "private missing"), "missing outcomes",
         f"several outcomes cannot leave out private missing ones{_COUNTED}", "label"),
    _Gap(("outcomes", "clipping"), "outcome bounds",
         "several outcomes are not clipped to private ranges; declare tighter bounds, and leave "
         "out clip_share", "label"),
    _Gap(("outcomes", "one sd"), "outcome",
         "one standard deviation does not serve several outcomes; give one by column: "
         "outcome_sd={'…': …}", "label"),
    _Gap(("outcomes", "sd by column"), "outcome",
         "guessed standard deviations are for the method of label level; leave them out", "sample"),
    _Gap(("subgroups", "rows"), "rows_per_person",
         "subgroups need one row per person: of somebody with several rows they may be in several "
         "subgroups, which would then cost more than ε together", "label"),
    _Gap(("subgroups", "private missing"), "missing outcomes",
         f"subgroups cannot leave out private missing outcomes{_COUNTED}", "label"),
    _Gap(("outcomes", "probability"), "probability",
         "at sample level a known probability of treatment is for one outcome; ask for each with "
         "its part of ε, or leave the probability out", "sample"),
    _Gap(("subgroups", "probability"), "probability",
         "a known probability of treatment has no subgroups at sample level; leave it out: "
         "design='randomized' alone compares the arms as they are", "sample"),
    _Gap(("subgroups", "ato"), "estimand",
         "the ATO of private subgroups does not add up; ask for the ATE, ATT or ATC", "sample"),
    _Gap(("survival", "outcomes"), "outcome",
         "a time to an event is asked for alone: its curves are released first; ask for other "
         "outcomes with a part of ε of their own"),
    _Gap(("survival", "track"), "target",
         "target 'track' has no weights for survival curves; use 'balance'"),
    _Gap(("survival", "clipping"), "outcome bounds",
         "pseudo-values of survival are not clipped to a private range, which would cut off the "
         "events; leave out clip_share"),
    _Gap(("survival", "strata"), "censoring_by",
         "strata of censoring are public columns and belong to label level; leave out "
         "censoring_by", "sample"),
    _Gap(("spark", "subgroups"), "by", "subgroups do not run on Spark; compute locally"),
    _Gap(("spark", "outcomes"), "outcome",
         "several outcomes do not run on Spark; ask for one, or compute locally"),
    _Gap(("spark", "track"), "target",
         "target 'track' does not run on Spark: matching puts all rows in order, which a cluster "
         "does not do; use 'balance'"),
)  # fmt: skip


def takes(method: str, level: Level, axis: Axis) -> bool:
    """Say whether a method takes an axis at a level."""
    return axis in COMPOSES.get((method, level), ())


def gap_sentences(method: str, level: Level) -> list[str]:
    """Return the sentence of each pair of axes that a method takes, but not together."""
    row = COMPOSES.get((method, level), ())
    return [
        gap.sentence
        for gap in dict.fromkeys(_gaps(method, level))
        if all(part in row or part not in AXES for part in gap.pair)
    ]


def method_for(name: str, request: Request) -> Method:
    """Return the method of that name, if it takes the request's options and estimand."""
    method = method_named(name, request.level)
    refuse_gaps(method, request)
    options_for(request, method.options, method.name)
    return method


def options_of(request: Request, kind: type[Options], name: str) -> Options:
    """Return the options of a request that the registered method can answer."""
    refuse_gaps(METHODS[name], request)
    return options_for(request, kind, name)


def refuse_gaps(
    method: Method, request: Request, domain: Domain | None = None, *, on_spark: bool = False
) -> None:
    """Refuse what a method does not take, from the request and the domain alone; reads no record.

    Without a domain two arms and one outcome are taken to be declared.
    """
    _refuse_unknown(method, request)
    asked = _asked(request, domain, on_spark=on_spark)
    column = "" if domain is None or domain.weights is None else domain.weights.column
    for gap in _gaps(method.name, request.level):
        if asked.issuperset(gap.pair):
            raise ArgumentError(gap.sentence, parameter=gap.parameter, column=column)
    for axis in (one for one in AXES if one in asked):
        if not takes(method.name, request.level, axis):
            words = AXES[axis].refusal.format(
                method=repr(method.name), level=request.level, axis=axis,
                arms=2 if domain is None else domain.treatment.size,
            )  # fmt: skip
            msg = f"{words}; use method {_able(axis, request.level)}"
            raise ArgumentError(msg, parameter=AXES[axis].parameter)
    if domain is not None:
        _refuse_undeclared(request, domain)


def _refuse_unknown(method: Method, request: Request) -> None:
    """Refuse a level or an estimand that a method does not know."""
    if request.level not in method.levels:
        works = " and ".join(method.levels)
        msg = f"method {method.name!r} works at {works} level, not at {request.level} level"
        raise ArgumentError(msg)
    if request.estimand not in method.estimands:
        known = ", ".join(f"the {estimand.upper()}" for estimand in method.estimands)
        able = [other for other in METHODS.values() if request.estimand in other.estimands]
        use = " or ".join(f"{other.name!r} ({', '.join(other.levels)} level)" for other in able)
        msg = (
            f"method {method.name!r} estimates {known} only; the {request.estimand.upper()} needs "
            f"method {use or 'of another kind: none is registered'}"
        )
        raise ArgumentError(msg)


def _refuse_undeclared(request: Request, domain: Domain) -> None:
    """Refuse columns that a request names and the domain does not declare."""
    is_public = has_public_covariates(request.level)
    if request.probability is not None and (
        request.probability in domain.covariates or not is_public
    ):
        probability_of(domain, request.probability)
    if domain.further:
        columns = {one.column for one in domain.outcomes}
        unknown = next((name for name, _ in request.spreads if name not in columns), None)
        if unknown is not None:
            msg = f"a standard deviation is given for {unknown!r}, which is none of the outcomes"
            raise ArgumentError(msg, parameter="outcome")
    outcome = domain.outcome
    if request.quantity == "risk" and not isinstance(outcome, Survival):
        msg = "the risk by a horizon is that of a time to an event: declare Survival(time, event)"
        raise ArgumentError(msg, parameter="event")
    if isinstance(outcome, Survival) and outcome.censoring_by is not None:
        Cells.of(domain, (outcome.censoring_by,))
    if request.by:
        Cells.of(domain, request.by)


def _asked(request: Request, domain: Domain | None, *, on_spark: bool) -> set[Axis | _Choice]:
    """Return the axes that a request uses on a domain."""
    options = request.options
    used: dict[Axis | _Choice, bool] = {
        "rows": request.rows_per_person != 1,
        "probability": request.probability is not None,
        "subgroups": bool(request.by),
        "spark": on_spark,
        "track": request.target == "track",
        "clipping": bool(getattr(options, "clip_fraction", 0)),
        "one sd": getattr(options, "outcome_sd", None) is not None,
        "sd by column": bool(request.spreads),
    }
    if domain is not None:
        outcome, missing = domain.outcome, {one.missing for one in domain.outcomes}
        used |= {
            "arms": domain.treatment.size > 2,
            "among": domain.treatment.size > 2 and request.among is not None,
            "outcomes": bool(domain.further),
            "public missing": "public" in missing,
            "private missing": "private" in missing,
            "weights": domain.weights is not None,
            "survival": isinstance(outcome, Survival),
            "strata": isinstance(outcome, Survival) and outcome.censoring_by is not None,
        }
    named: set[Axis | _Choice] = {axis for axis, is_used in used.items() if is_used}
    return named if request.estimand == "ate" else named | {cast("_Choice", request.estimand)}


def _gaps(method: str, level: Level) -> list[_Gap]:
    return [
        gap for gap in _GAPS
        if gap.level in (None, level) and (not gap.methods or method in gap.methods)
    ]  # fmt: skip


def _able(axis: Axis, level: Level) -> str:
    """Name the methods that take an axis: those of the level, or of the other."""
    here = [repr(name) for name, at in COMPOSES if at == level and takes(name, at, axis)]
    there = [f"{name!r} ({at} level)" for name, at in COMPOSES if takes(name, at, axis)]
    return " or ".join(here or there)
