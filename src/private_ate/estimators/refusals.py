"""What a method refuses before a record is read: it follows from its record alone."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from private_ate.domain import Domain, Outcome, Treatment, label_text
from private_ate.domain.subgroups import Cells
from private_ate.errors import ArgumentError
from private_ate.estimators.registry import METHODS, Method
from private_ate.estimators.request import Request, options_for
from private_ate.estimators.trial.probability import probability_of
from private_ate.privacy.budget import parse_epsilon
from private_ate.privacy.levels import has_public_covariates

__all__ = [
    "among_arm",
    "options_of",
    "possible_estimands",
    "refuse_arms",
    "refuse_left_out",
    "refuse_missing_rule",
    "refuse_probability",
    "refuse_subgroups",
    "refuse_unanswerable",
    "refuse_weights",
    "with_outcome_sd",
]

Options = TypeVar("Options")


def refuse_unanswerable(method: Method, request: Request) -> None:
    """Refuse a level, an estimand or people with several rows that a method cannot answer."""
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
    if request.rows_per_person != 1 and not method.several_rows:
        msg = f"method {method.name!r} protects one row per person; use method 'auto' for more"
        raise ArgumentError(msg)


def refuse_left_out(request: Request, *, left_out: bool) -> None:
    """Refuse to leave out rows where that would depend on private entries."""
    if left_out and not has_public_covariates(request.level):
        msg = (
            "leave_out_undeclared belongs to label level, where treatment and covariates are "
            "public; at sample level nothing may depend on which rows those are"
        )
        raise ArgumentError(msg)


def refuse_arms(method: Method, request: Request, arms: int) -> None:
    """Refuse more arms than a method compares, and estimands that are named for two."""
    if arms > method.arms:
        words = "two arms" if method.arms == 2 else f"at most {method.arms} arms"
        able = [repr(other.name) for other in METHODS.values()
                if request.level in other.levels and arms <= other.arms]  # fmt: skip
        use = f"; use method {' or '.join(able)}" if able else ""
        msg = f"method {method.name!r} compares {words}; {arms} are declared{use}"
        raise ArgumentError(msg, parameter="method")
    if arms > 2 and request.among is not None and not method.among_arms:
        able = [repr(other.name) for other in METHODS.values()
                if other.among_arms and request.level in other.levels]  # fmt: skip
        use = f"; use method {' or '.join(able)}" if able else f" at {request.level} level"
        msg = f"method {method.name!r} compares {arms} arms among all units, not those of one{use}"
        raise ArgumentError(msg, parameter="among")
    if arms > 2 and request.estimand in ("att", "atc"):
        msg = (
            f"of {arms} arms none is the treated one: name the arm whose units are meant: among='…'"
        )
        raise ArgumentError(msg, parameter="among")
    if arms > 2 and request.estimand != "ate":
        msg = f"the {request.estimand.upper()} compares two arms; {arms} are declared"
        raise ArgumentError(msg, parameter="estimand")


def among_arm(request: Request, treatment: Treatment | None, among: object) -> Request:
    """Return the request for the units of one arm; of two arms that is the ATT or the ATC."""
    if among is None:
        return request
    labels = () if treatment is None else treatment.labels
    text = label_text(among) if isinstance(among, str | int | float) else ""
    if text not in labels:
        known = f": {', '.join(map(repr, labels))}" if labels else ", declared by a Treatment"
        msg = f"among names one of the arms{known}"
        raise ArgumentError(msg, parameter="among")
    if request.estimand != "ate":
        msg = f"among and the estimand {request.estimand.upper()} say twice who is meant; keep one"
        raise ArgumentError(msg, parameter="among")
    if len(labels) > 2:
        return replace(request, among=text)
    return replace(request, estimand="atc" if text == labels[0] else "att")


def possible_estimands(method: Method, request: Request, treatment: Treatment) -> tuple[str, ...]:
    """Return all that a release may turn out to be about; follows from public facts alone.

    Options can decide about it, the units of one of several arms are an ATT or an ATC, and some
    methods choose among estimands by what they have released.
    """
    if request.among is not None:
        return ("atc" if request.among == treatment.coded[0] else "att",)
    adjusts = getattr(request.options, "adjust", None)
    if adjusts is False and request.design != "randomized":
        return ("difference",)
    if getattr(request.options, "model", None) == "overlap":
        return ("ato",)
    return tuple(dict.fromkeys((request.estimand, *method.turns_to)))


def refuse_probability(method: Method, request: Request, domain: Domain | None) -> None:
    """Refuse a known probability of treatment that a method has no use for, or that is none."""
    if request.probability is None:
        return
    if domain is not None and domain.treatment.size > 2:
        msg = "a known probability is that of one of two arms; leave it out for several"
        raise ArgumentError(msg, parameter="probability")
    if not method.trials:
        able = " or ".join(
            repr(other.name)
            for other in METHODS.values()
            if other.trials and request.level in other.levels
        )
        msg = f"method {method.name!r} has no use for a known probability of treatment; use {able}"
        raise ArgumentError(msg, parameter="method")
    if domain is None:
        return
    if request.probability in domain.covariates or not has_public_covariates(request.level):
        probability_of(domain, request.probability)


def refuse_subgroups(method: Method, request: Request, domain: Domain | None) -> None:
    """Refuse subgroups that cannot be made or estimated; reads no record."""
    if not request.by:
        return
    if request.level not in method.subgroups_at:
        able = [
            f"{other.name!r} ({level} level)"
            for other in METHODS.values()
            for level in other.subgroups_at
        ]
        msg = (
            f"method {method.name!r} has no subgroups at {request.level} level; "
            f"{' and '.join(able)} have"
        )
        raise ArgumentError(msg, parameter="method")
    if request.rows_per_person != 1:
        msg = (
            "subgroups need one row per person: of somebody with several rows they may be in "
            "several subgroups, which would then cost more than ε together"
        )
        raise ArgumentError(msg, parameter="rows_per_person")
    is_public = has_public_covariates(request.level)
    if not is_public and request.estimand == "ato":
        msg = "the ATO of private subgroups does not add up; ask for the ATE, ATT or ATC"
        raise ArgumentError(msg, parameter="estimand")
    if domain is None:
        msg = "subgroups are made by columns that a domain declares; give domain= too"
        raise ArgumentError(msg, parameter="by")
    if is_public and domain.outcome.missing == "private":
        msg = (
            "subgroups cannot leave out private missing outcomes; declare them public, or the "
            "number that a missing outcome counts as"
        )
        raise ArgumentError(msg, parameter="missing outcomes")
    if not is_public:
        _refuse_private_cells(request, domain)
    Cells.of(domain, request.by)


def _refuse_private_cells(request: Request, domain: Domain) -> None:
    """Refuse what subgroups cannot be asked for where it is private who is in them."""
    if request.probability is not None:
        msg = (
            "a known probability of treatment has no subgroups at sample level; leave it out: "
            "design='randomized' alone compares the arms as they are"
        )
        raise ArgumentError(msg, parameter="probability")
    if getattr(request.options, "model", None) == "overlap":
        msg = "effects of model 'overlap' do not add up over subgroups; choose another model"
        raise ArgumentError(msg, parameter="model")
    if len(domain.outcomes) > 1:
        msg = "subgroups at sample level have one outcome; ask for each with its part of ε"
        raise ArgumentError(msg, parameter="outcome")
    if domain.weights is not None:
        msg = "subgroups at sample level take no sampling weights; leave out one or the other"
        raise ArgumentError(msg, parameter="sampling weights", column=domain.weights.column)
    try:
        parse_epsilon(request.epsilon / (4 if request.overall else 2))
    except ArgumentError:
        msg = "subgroups at sample level have parts of epsilon: write it with at most 13 digits"
        raise ArgumentError(msg, parameter="epsilon") from None


def refuse_missing_rule(method: Method, request: Request, outcome: Outcome, arms: int = 2) -> None:
    """Refuse a declared rule for missing outcomes that a method does not follow; reads no value."""
    if outcome.missing is None:
        return
    of_arms = method.follows if arms == 2 or method.arms_follow is None else method.arms_follow
    if outcome.missing in method.follows and outcome.missing not in of_arms:
        msg = (
            f"method {method.name!r} cannot leave out {outcome.missing} missing outcomes of {arms} "
            "arms; declare them public, or the number that a missing outcome counts as"
        )
        raise ArgumentError(msg, parameter="missing outcomes")
    if request.level not in method.follows_at or outcome.missing not in method.follows:
        able = [
            repr(other.name)
            for other in METHODS.values()
            if request.level in other.follows_at and outcome.missing in other.follows
        ]
        msg = (
            f"method {method.name!r} cannot leave out {outcome.missing} missing outcomes at "
            f"{request.level} level; use method {' or '.join(able)}, or declare the number that a "
            "missing outcome counts as"
        )
        raise ArgumentError(msg, parameter="missing outcomes")


def refuse_weights(method: Method, request: Request, domain: Domain) -> None:
    """Refuse declared sampling weights that a method cannot take; reads no value."""
    if domain.weights is None:
        return
    column = domain.weights.column
    if request.level not in method.weighs_at:
        able = [repr(o.name) for o in METHODS.values() if request.level in o.weighs_at]
        use = (
            f"use method {' or '.join(able)}" if able else "at label level 'calibrated' takes them"
        )
        msg = (
            f"method {method.name!r} takes no sampling weights at {request.level} level; {use}, or "
            f"declare the domain without {column!r}"
        )
        raise ArgumentError(msg, parameter="method")
    if domain.treatment.size > 2 and not method.arms_weigh:
        msg = (
            f"at {request.level} level sampling weights are for two arms; {domain.treatment.size} "
            "are declared: compare two of them at a time, or declare the domain without "
            f"{column!r}"
        )
        raise ArgumentError(msg, parameter="arms")
    if request.target == "track":
        msg = "target 'track' follows matching, which takes no sampling weights; use 'balance'"
        raise ArgumentError(msg, parameter="target")


def options_of(request: Request, kind: type[Options], name: str) -> Options:
    """Return the options of a request that the registered method can answer."""
    refuse_unanswerable(METHODS[name], request)
    return options_for(request, kind, name)


def with_outcome_sd(options: Options, outcome_sd: float | None) -> Options:
    """Return a method's options with the guessed spread of the outcome among them."""
    if outcome_sd is None:
        return options
    if "outcome_sd" not in {field.name for field in fields(cast("Any", options))}:
        msg = (
            "the guessed standard deviation of the outcome is of no use to this method: "
            f"{type(options).__name__} has no outcome_sd; leave it out"
        )
        raise ArgumentError(msg)
    known = cast("Any", options).outcome_sd
    if known is not None and known != outcome_sd:
        msg = f"the outcome's standard deviation is given twice: {known:g} and {outcome_sd:g}"
        raise ArgumentError(msg)
    return cast("Options", replace(cast("Any", options), outcome_sd=outcome_sd))
