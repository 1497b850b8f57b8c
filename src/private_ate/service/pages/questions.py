"""The form of a question: what an analyst may ask, written, read back and worded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from private_ate.domain import Categories, Domain, Interval
from private_ate.errors import ArgumentError
from private_ate.estimators.registry import AUTO, METHODS
from private_ate.report.markup import Markup, element
from private_ate.service.pages.frame import button, checkbox, choice, field, form
from private_ate.service.question import Question
from private_ate.service.store.catalogue import Dataset
from private_ate.service.store.people import Session

__all__ = ["FIELDS", "ask_plainly", "question_form", "question_text", "read_number"]

_ESTIMANDS: Final = (
    ("ate", "ATE: everybody"), ("att", "ATT: the treated"), ("atc", "ATC: the untreated"),
    ("ato", "ATO: where arms overlap"),
)  # fmt: skip
_DESIGNS: Final = (
    ("unknown", "I do not say"), ("observational", "observational"), ("randomized", "randomised"),
)  # fmt: skip
_MORE: Final = frozenset({"by", "overall", "probability", "covariates"})
FIELDS: Final = _MORE | {"epsilon", "half_width", "estimand", "among", "design", "confidence",
                          "method"}  # fmt: skip


def question_form(found: Dataset, session: Session, before: Mapping[str, str]) -> Markup:
    """Return the form of a question, filled in as it was ``before``."""
    typical = found.policy.epsilon_per_request
    arms = found.domain.treatment
    chosen = before.get("estimand", "")
    whose = choice("estimand", "Whose effect", _ESTIMANDS, chosen=chosen)
    if arms.size > 2:
        labels = (("", "everybody"), *((arm, arm) for arm in arms.labels))
        whose = choice("among", "Whose effect", labels, chosen=before.get("among", ""))
    more = {"open": "open"} if set(before) & _MORE else {}
    return form(
        f"/datasets/{found.name}/plan", session,
        field("epsilon", "ε of the answer", "What it may cost, for example 0.3.",
              before.get("epsilon", "0.1" if typical == "0" else typical), required="required",
              inputmode="decimal"),
        field("half_width", "Wanted half-width of the interval",
              "Optional: the plan then says which ε it takes, in units of the outcome.",
              before.get("half_width", ""), inputmode="decimal"),
        whose,
        choice("design", "How treatment was given", _DESIGNS, chosen=before.get("design", "")),
        element("details", element("summary", "More choices"), *_more_choices(found, before),
                **more),
        button("Show the plan"),
    )  # fmt: skip


def question_text(asked: Question) -> str:
    """Word a question in a line: what differs from the usual."""
    parts = [asked.estimand.upper() if asked.among is None else f"among {asked.among}"]
    parts += [f"method {asked.method}"] * (asked.method != "auto")
    parts += [f"subgroups by {', '.join(asked.by)}"] * bool(asked.by)
    parts += ["and everybody for half of ε"] * asked.overall
    parts += [f"{asked.design} design"] * (asked.design != "unknown")
    parts += [f"probability {asked.probability}"] * (asked.probability is not None)
    parts += [f"adjusted for {', '.join(asked.covariates or ())}"] * bool(asked.covariates)
    parts += ["no interval"] * (asked.confidence is None)
    return ", ".join(parts)


def ask_plainly(name: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Read a form as the plain values of a question."""
    told = fields.get("probability", "")
    confidence = fields.get("confidence", "0.95")
    return {
        "dataset": name, "epsilon": fields.get("epsilon", ""),
        "estimand": fields.get("estimand", "ate"), "design": fields.get("design", "unknown"),
        "among": fields.get("among") or None, "method": fields.get("method") or "auto",
        "by": _list(fields.get("by", "")), "overall": fields.get("overall", "") == "yes",
        "probability": read_number("", told) if _is_number(told) else told or None,
        "covariates": _list(fields.get("covariates", "")) or None,
        "confidence": None if confidence in ("", "none") else read_number("confidence", confidence),
    }  # fmt: skip


def read_number(name: str, text: str) -> float | None:
    """Read a number with a point or a comma; nothing is None."""
    if not text:
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError as cause:
        msg = f"the {name} is a number such as 1.5"
        raise ArgumentError(msg) from cause


def _more_choices(found: Dataset, before: Mapping[str, str]) -> list[Markup]:
    """Return what most questions leave as it is."""
    domain = found.domain
    able = [name for name, method in METHODS.items() if found.level in method.levels]
    known = ", ".join(domain.covariates)
    parts = []
    if any(found.level in METHODS[name].subgroups_at for name in AUTO[found.level]):
        parts += [
            field("by", "Subgroups", "Columns of labels, and numbers with a cut, with commas: "
                  f"{_example(domain)}. Each has an effect of its own.", before.get("by", "")),
            checkbox("overall", "Pay half of ε for the effect of everybody beside subgroups",
                     checked="overall" in before),
        ]  # fmt: skip
    if domain.treatment.size == 2:
        parts.append(field("probability", "Probability of treatment in a trial",
                           "A number such as 0.5, or the column that holds everybody's; only for "
                           "a randomised design.", before.get("probability", "")))  # fmt: skip
    return [
        *parts,
        field("covariates", "Covariates to adjust for", f"With commas; empty for all: {known}.",
              before.get("covariates", "")),
        field("confidence", "Confidence of the interval",
              "0.95, for example; none for no interval.", before.get("confidence", "0.95")),
        choice("method", "Method", (("auto", "auto: the recommended one"),
                                    *((name, name) for name in able)),
               chosen=before.get("method", "")),
    ]  # fmt: skip


def _example(domain: Domain) -> str:
    """Return subgroups that the domain allows, as an example."""
    for name, kind in domain.covariates.items():
        if isinstance(kind, Categories) or kind.is_binary:
            return name
    name, kind = next(iter(domain.covariates.items()))
    return f"{name}<{cast('Interval', kind).middle:g}"


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_number(text: str) -> bool:
    return text[:1] in "0123456789.," and bool(text)
