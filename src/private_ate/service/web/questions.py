"""The analyst's question: its form, how it is worded, and what to expect of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast
from urllib.parse import urlencode

from private_ate.domain import Categories, Domain, Interval, label_text
from private_ate.errors import PrivateAteError
from private_ate.methods.composition import takes
from private_ate.methods.registry import AUTO, METHODS
from private_ate.report.markup import Markup, element, join
from private_ate.service.policy import LONGEST_PURPOSE, Dataset, Question
from private_ate.service.settling import Planned
from private_ate.service.web import layout
from private_ate.service.web.layout import Fault, Field


def _read_probability(name: str, text: str) -> object:
    """Read a number, or the name of a column."""
    return layout.read_number(name, text) if text[:1] in set("0123456789.,") else text or None


_FIRST: Final = (
    Field("epsilon", "ε of the answer", "What it may cost, for example 0.3.", "0.1",
          attributes={**layout.REQUIRED, **layout.DECIMAL}),
    Field("half_width", "Wanted half-width of the interval",
          "Optional: the plan then says which ε it takes, in units of the outcome.",
          read=layout.read_number, attributes=layout.DECIMAL),
    Field("estimand", "Whose effect", options=(
        ("ate", "ATE: everybody"), ("att", "ATT: the treated"), ("atc", "ATC: the untreated"),
        ("ato", "ATO: where arms overlap"),
    )),
    Field("among", "Whose effect", options=(("", "everybody"),)),
    Field("design", "How treatment was given", options=(
        ("unknown", "I do not say"), ("observational", "observational"),
        ("randomized", "randomised"),
    )),
    Field("purpose", "Purpose", "Optional: what the answer is for. Curators read it, and it stays "
          "in the history.", attributes={"maxlength": str(LONGEST_PURPOSE)}),
)  # fmt: skip
_MORE: Final = (
    Field("by", "Subgroups", "Columns of labels, and numbers with a cut, with commas: {example}. "
          "Each has an effect of its own.", read=layout.read_list),
    Field("overall", "Pay half of ε for the effect of everybody beside subgroups",
          read=layout.read_switch),
    Field("probability", "Probability of treatment in a trial", "A number such as 0.5, or the "
          "column that holds everybody's; only for a randomised design.", read=_read_probability),
    Field("covariates", "Covariates to adjust for", "With commas; empty for all: {covariates}.",
          read=layout.read_list),
    Field("outcome_sd", "Standard deviation of the outcome among persons treated alike",
          "A public guess, in units of the outcome; empty if you have none.",
          read=layout.read_number, attributes=layout.DECIMAL),
    Field("confidence", "Confidence of the interval", "0.95, for example; none for no interval.",
          "0.95", lambda name, text: None if text == "none" else layout.read_number(name, text)),
    Field("method", "Method", options=(("auto", "auto: the recommended one"),)),
)  # fmt: skip
FIELDS: Final = {one.name: one for one in (*_FIRST, *_MORE)}
_MORE_NAMES: Final = frozenset(one.name for one in _MORE)
_OPENING: Final = _MORE_NAMES - {"confidence", "method"}  # what was said of these opens them
_ANY: Final = Question("any", "1")
_USUAL: Final = _ANY.plain


def question_form(
    found: Dataset, before: Mapping[str, str], error: PrivateAteError | None = None
) -> Markup:
    """Return the form of a question, filled in as it was ``before``; an error is at its field."""
    domain, arms = found.domain, found.domain.treatment
    typical = found.policy.typical
    able = [name for name, method in METHODS.items() if found.level in method.levels]
    fields = dict(FIELDS)
    del fields["among" if arms.size == 2 else "estimand"]
    if arms.size > 2:
        labels = (("", "everybody"), *((arm, arm) for arm in arms.labels))
        fields["among"] = replace(fields["among"], options=labels)
        del fields["probability"]
    if not takes(AUTO[found.level], found.level, "subgroups"):
        del fields["by"], fields["overall"]
    if typical is not None:
        fields["epsilon"] = replace(fields["epsilon"], usual=typical.epsilon_text)
    method = fields["method"]
    options = (*method.options, *((name, name) for name in able))
    fields["method"] = replace(method, options=options)
    fault = Fault.of(error, fields.values())
    is_open = fault.name in _MORE_NAMES or any(before.get(name) for name in _OPENING)
    words = {"example": _example(domain), "covariates": ", ".join(domain.covariates)}
    first, more = (
        layout.show_fields(
            [one for one in fields.values() if (one.name in _MORE_NAMES) is late],
            before, fault, **words,
        )
        for late in (False, True)
    )  # fmt: skip
    unfold = {"open": "open"} if is_open else {}
    # It changes nothing: its fields become the address of the page that it leads to.
    return element(
        "form", *fault.above, *first,
        element("details", element("summary", "More choices"), *more, **unfold),
        layout.button("Show the plan"), method="get", action=f"/datasets/{found.name}/plan",
    )  # fmt: skip


def written(query: Mapping[str, str]) -> dict[str, str]:
    """Return what an address says of the fields of the form."""
    return {key: text[:500].strip() for key, text in query.items() if key in FIELDS}


def question_text(asked: Question) -> str:
    """Word a question in a line: what differs from the usual."""
    parts = (
        (True, asked.estimand.upper() if asked.among is None else f"among {asked.among}"),
        (asked.method != "auto", f"method {asked.method}"),
        (asked.by, f"subgroups by {', '.join(asked.by)}"),
        (asked.overall, "and everybody for half of ε"),
        (asked.design != "unknown", f"{asked.design} design"),
        (asked.probability is not None, f"probability {asked.probability}"),
        (asked.covariates, f"adjusted for {', '.join(asked.covariates or ())}"),
        (asked.confidence is None, "no interval"),
        (asked.outcome_sd, f"outcome's standard deviation {asked.outcome_sd}"),
    )
    return ", ".join(words for applies, words in parts if applies)


def ask_plainly(name: str, sent: Mapping[str, str]) -> dict[str, Any]:
    """Read a form as the plain values of a question; what was not sent is as usual."""
    fields = (one for one in FIELDS.values() if one.name in sent and one.name != "half_width")
    plain = layout.read_fields(fields, sent)
    for usual in ("estimand", "design", "method", "purpose", "covariates"):
        plain[usual] = plain.get(usual) or _USUAL[usual]
    return {**plain, "dataset": name, "epsilon": sent.get("epsilon", "")}


def plan_path(asked: Question) -> str:
    """Return the address of a question's plan: a form that asks it again.

    Options of a method, a target and a number of neighbours have no field.
    """
    said = {"epsilon": asked.epsilon}
    for name, one in FIELDS.items():
        if name in _USUAL and (value := getattr(asked, name)) != getattr(_ANY, name):
            said[name] = one.write(value) or "none"
    return f"/datasets/{asked.dataset}/plan?{urlencode(said)}"


def _example(domain: Domain) -> str:
    """Return subgroups that the domain allows, as an example."""
    for name, kind in domain.covariates.items():
        if isinstance(kind, Categories) or kind.is_binary:
            return name
    name, kind = next(iter(domain.covariates.items()))
    return f"{name}<{cast('Interval', kind).middle:g}"


def compared(domain: Domain) -> str:
    """Say which arms are compared, and on what."""
    treatment = domain.treatment
    outcomes = ", ".join(outcome.column for outcome in domain.outcomes)
    if treatment.size > 2:
        return f"Effects of {treatment.column} ({', '.join(treatment.labels)}) on {outcomes}"
    treated, control = label_text(treatment.treated), label_text(treatment.control)
    return f"Effect of {treatment.column}, {treated} against {control}, on {outcomes}"


def expected(planned: Planned) -> Markup:
    """Return what to expect of an answer."""
    row = planned.expected
    if row is None:
        return element("p", planned.caveat)
    facts = [
        ("Half-width of the interval", f"{row.half_width:.3g}"),
        ("Expected error", f"{row.error:.3g}"),
        ("… of which privacy noise", f"{row.noise_error:.3g}"),
        ("Smallest effect that would show", f"{row.detectable_effect:.3g}"),
        ("Adjusted for covariates", "yes" if row.adjusted else "no"),
    ]
    table = layout.facts("What to expect, in units of the outcome", facts, "Number")
    if planned.contrasts:
        rows = [
            (f"{each.arm} against {each.against}", f"{each.half_width:.3g}", f"{each.error:.3g}")
            for each in planned.contrasts
        ]
        names = ("Contrast", "Half-width", "Expected error")
        words = "What to expect of each contrast, in units of the outcome"
        table = layout.table(words, names, rows)
    answer = [layout.promise(_sentence(planned))] if planned.answer else []
    return join(*answer, table, element("p", f"It {planned.caveat}.", class_="soft"))


def _sentence(planned: Planned) -> str:
    words = f"{planned.answer[0].upper()}{planned.answer[1:]}"
    if planned.epsilon_needed:
        more = int(float(planned.budget.left) / planned.epsilon_needed + 1e-9)
        return f"{words}; the budget then allows {more} such answers."
    return f"{words}."


def price(planned: Planned) -> Markup:
    """Say what an answer costs."""
    delta = f", δ = {planned.delta}" if planned.delta != "0" else ""
    words = (
        f"It costs ε = {planned.epsilon}{delta}; {planned.budget.left} is left of "
        f"{planned.budget.epsilon}, enough for {planned.answers_left} such answers. A repeat "
        "shows the same release and costs nothing."
    )
    return element("p", words)
