"""The layout of every page: head, navigation, forms, style, errors; all escaped, no script.

A form is a table of :class:`Field`, by which it is shown, filled in again and read back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from private_ate.errors import ArgumentError, PrivateAteError
from private_ate.report.markup import STYLE, Markup, element, join
from private_ate.service.policy import Balance
from private_ate.service.vocabulary import Session

Skip = Annotated[int, Query(ge=0, le=10**9)]

router = APIRouter(include_in_schema=False)

_LINKS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "analyst": (("/", "Data sets"), ("/requests", "My requests")),
    "curator": (
        ("/", "Data sets"),
        ("/queue", "Queue"),
        ("/requests", "Requests"),
        ("/manage", "Manage"),
        ("/tokens", "Users"),
        ("/history", "History"),
    ),
    "auditor": (("/", "Data sets"), ("/requests", "Requests"), ("/history", "History")),
}

_WIDE: Final = 5  # columns of a table that a phone has no room for
_SHEET: Final = (
    STYLE
    + """
.top { border-bottom: 1px solid var(--line); background: var(--pale); }
.top nav { max-width: 46rem; margin: 0 auto; padding: .6rem 1rem; display: flex; flex-wrap: wrap;
  gap: .25rem 1.1rem; align-items: center; }
.top a[aria-current] { font-weight: 650; color: var(--ink); text-decoration: none; }
.top form { margin-left: auto; }
a { color: var(--deep); } a:focus-visible, button:focus-visible, input:focus-visible,
select:focus-visible, textarea:focus-visible, summary:focus-visible { outline: 3px solid #f0a030;
  outline-offset: 2px; }
.skip { position: absolute; top: .4rem; left: 1rem; z-index: 3; background: #fff;
  padding: .3rem .6rem; }
.skip:not(:focus) { clip-path: inset(50%); height: 1px; overflow: hidden; white-space: nowrap; }
label { display: block; margin: .8rem 0 .15rem; font-weight: 600; }
.time, .scroll code.id { white-space: nowrap; }
.turn a { margin-right: 1.2rem; }
label.beside { display: inline; font-weight: 400; }
.hint { color: var(--soft); font-size: .875rem; margin: .1rem 0 .2rem; }
input, select, textarea { font: inherit; width: 100%; max-width: 26rem; padding: .45rem .5rem;
  border: 1px solid #77828e; border-radius: .25rem; background: #fff; color: var(--ink); }
input[type=checkbox] { width: 1.2rem; height: 1.2rem; vertical-align: middle; }
textarea { max-width: 42rem; min-height: 9rem; font-family: ui-monospace, Menlo, monospace;
  font-size: .85rem; }
button { font: inherit; font-weight: 600; padding: .5rem 1rem; margin: .9rem .5rem .2rem 0;
  border: 1px solid var(--deep); border-radius: .25rem; background: var(--deep); color: #fff;
  cursor: pointer; }
button.quiet { background: #fff; color: var(--deep); padding: .25rem .7rem; margin: 0; }
meter { width: 100%; height: 1rem; }
.card { border: 1px solid var(--line); border-radius: .4rem; padding: .2rem 1rem .8rem;
  margin: 1rem 0; }
.token { font-family: ui-monospace, Menlo, monospace; background: var(--pale); padding: .6rem;
  display: block; }
.scroll { overflow-x: auto; }
.scroll th, .scroll td { overflow-wrap: break-word; }
.scroll code { overflow-wrap: anywhere; }
form > button { display: block; }
"""
)


def respond(
    title: str,
    *parts: str,
    session: Session | None = None,
    here: str = "",
    status: int = 200,
    refresh: float = 0.0,
) -> HTMLResponse:
    """Return a whole page; ``refresh`` loads it again after so many seconds."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="robots", content="noindex"),
        element("title", f"{title} – private-ate"),
        element("link", rel="stylesheet", href="/style.css"),
    )
    top = [element("a", "Skip to the content", href="#content", class_="skip")]
    if session is not None:
        top.append(_navigation(session, here))
    main = element("main", element("h1", title), *parts, id="content")
    body = element("body", *top, main)
    text = "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"
    headers = {"Refresh": f"{max(round(refresh), 1)}"} if refresh else {}
    return HTMLResponse(text, status, headers=headers)


def _navigation(session: Session, here: str) -> Markup:
    actor = session.actor
    links = [
        element("a", text, href=path, **({"aria_current": "page"} if path == here else {}))
        for path, text in _LINKS[actor.role]
    ]
    leave = form("/logout", session, button(f"Leave ({actor.name}, {actor.role})", quiet=True))
    return element("header", element("nav", *links, leave, aria_label="Pages"), class_="top")


def form(action: str, session: Session | None, *parts: str, **hidden: str) -> Markup:
    """Return a form that repeats its session's secret text."""
    fields = dict(hidden) if session is None else {**hidden, "form": session.form}
    concealed = [
        element("input", type="hidden", name=name, value=value) for name, value in fields.items()
    ]
    return element("form", *concealed, *parts, method="post", action=action)


def query_form(action: str, *parts: str) -> Markup:
    """Return a form that changes nothing: its fields become the address of the page it leads to."""
    return element("form", *parts, method="get", action=action)


def read_text(_: str, text: str) -> object:
    """Read a text; nothing is None."""
    return text or None


def read_list(_: str, text: str) -> object:
    """Read words between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def read_open_list(name: str, text: str) -> object:
    """Read words between commas; the word all is None."""
    return None if text.strip() == "all" else read_list(name, text)


def read_number(name: str, text: str) -> float | None:
    """Read a number with a point or a comma; nothing is None."""
    if not text:
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError as cause:
        msg = f"{name} is a number such as 1.5"
        raise ArgumentError(msg, parameter=name) from cause


def read_whole(name: str, text: str) -> int:
    """Read a whole number."""
    if not (text.isascii() and text.isdigit() and len(text) <= 13):
        msg = f"{name} is a whole number"
        raise ArgumentError(msg, parameter=name)
    return int(text)


def read_switch(_: str, text: str) -> bool:
    """Read a box to tick."""
    return text == "yes"


@dataclass(frozen=True, slots=True)
class Field:
    """An entry of a form: its words, and how a value of it is read.

    ``usual`` is the text that it has at first. With ``options`` it is a list to choose from, with
    `read_switch` a box to tick, with an attribute ``rows`` a text of several lines.
    """

    name: str
    label: str
    hint: str = ""
    usual: str = ""
    read: Callable[[str, str], object] = read_text
    options: Sequence[tuple[str, str]] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_written(self) -> bool:
        """Whether an error about it can stand beside it."""
        return not self.options and self.read is not read_switch

    def show(self, text: str, error: str = "", place: str = "") -> Markup:
        """Return it with its label; ``place`` is its id where a page has several."""
        if self.read is read_switch:
            return _checkbox(self, text)
        return (
            _choice(self, text, place or self.name) if self.options else _entry(self, text, error)
        )

    def write(self, value: object) -> str:
        """Return a value as the text that is read as it."""
        if self.read is read_open_list and value is None:
            return "all"
        if isinstance(value, bool) or value is None:
            return "yes" if value else ""
        return ", ".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a form that was sent: at a field that is written, or above all."""

    name: str = ""
    sentence: str = ""

    @classmethod
    def of(cls, error: PrivateAteError | None, fields: Iterable[Field]) -> Fault:
        """Return the field that an error names first, or that is named first in its sentence."""
        if error is None:
            return cls()
        known = {one.name: one for one in fields}
        named = [error.parameter, *re.findall(r"\w+", str(error))]
        name = next((word for word in named if word in known), "")
        is_there = bool(name) and known[name].is_written
        return cls(name if is_there else "", f"{str(error)[:1].upper()}{str(error)[1:]}.")

    @property
    def above(self) -> list[Markup]:
        """The sentence, if it stands at no field."""
        return [alert(self.sentence)] if self.sentence and not self.name else []


def show_fields(
    fields: Iterable[Field],
    before: Mapping[str, str],
    fault: Fault | None = None,
    **words: str,
) -> list[Markup]:
    """Return entries filled in as they were ``before``; ``words`` stand in hints by their names."""
    wrong = fault or Fault()
    return [
        replace(one, hint=one.hint.format(**words)).show(
            before.get(one.name, one.usual), wrong.sentence if one.name == wrong.name else ""
        )
        for one in fields
    ]


def read_fields(fields: Iterable[Field], sent: Mapping[str, str]) -> dict[str, Any]:
    """Return the plain values of what was sent."""
    return {one.name: one.read(one.name, sent.get(one.name, "")) for one in fields}


def _entry(one: Field, value: str, error: str) -> Markup:
    """Return a labelled input of text; an error is beside."""
    name, notes = one.name, []
    if one.hint:
        notes.append(element("p", one.hint, class_="hint", id=f"{name}-hint"))
    given = {"type": "text", **one.attributes}
    if error:
        notes.append(element("p", error, class_="warning", id=f"{name}-error", role="alert"))
        given["aria_invalid"] = "true"
    described = " ".join(
        f"{name}-{part}" for part, text in (("hint", one.hint), ("error", error)) if text
    )
    if described:
        given["aria_describedby"] = described
    if "rows" in given:
        del given["type"]
        entry = element("textarea", value, id=name, name=name, **given)
    else:
        entry = element("input", id=name, name=name, value=value, **given)
    return join(element("label", one.label, for_=name), *notes, entry)


def _choice(one: Field, chosen: str, place: str) -> Markup:
    entries = [
        element(
            "option", text, value=value, **({"selected": "selected"} if value == chosen else {})
        )
        for value, text in one.options
    ]
    return join(
        element("label", one.label, for_=place),
        element("select", *entries, id=place, name=one.name),
    )


def _checkbox(one: Field, text: str) -> Markup:
    mark = {"checked": "checked"} if text == "yes" else {}
    box = element("input", type="checkbox", id=one.name, name=one.name, value="yes", **mark)
    return element("p", box, " ", element("label", one.label, for_=one.name, class_="beside"))


def button(text: str, *, quiet: bool = False, **attributes: str) -> Markup:
    """Return a button that sends its form."""
    look = {"class_": "quiet"} if quiet else {}
    return element("button", text, type="submit", **look, **attributes)


def show_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table; the first cell of a row heads it. Rows of a wide one stack on a phone."""
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = [
        element(
            "tr", element("th", row[0], scope="row"),
            *(
                element("td", cell, data_name=f"{name}:" if cell else "")
                for name, cell in zip(names[1:], row[1:], strict=True)
            ),
        )
        for row in rows
    ]  # fmt: skip
    look = {"class_": "arms"} if len(names) >= _WIDE else {}
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", *body),
        **look,
    )  # fmt: skip
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def turn_pages(path: str, skip: int, size: int, *, more: bool) -> Markup:
    """Return links to newer and older lines of a list; nothing if all of it is there."""
    links = []
    if skip:
        links.append(element("a", "Newer", href=f"{path}?skip={max(skip - size, 0)}"))
    if more:
        links.append(element("a", "Older", href=f"{path}?skip={skip + size}"))
    return element("nav", *links, class_="turn", aria_label="More") if links else join()


def show_facts(caption: str, facts: Iterable[Sequence[str]], first: str = "Fact") -> Markup:
    """Return a table of names and values."""
    return show_table(caption, (first, "Value"), facts)


def warning(text: str) -> Markup:
    """Return a sentence that has to be seen."""
    return element("p", text, class_="warning")


def alert(text: str) -> Markup:
    """Return a sentence that readers of screens speak at once."""
    return element("p", text, class_="warning", role="alert")


def promise(*parts: str) -> Markup:
    """Return a sentence that stands out."""
    return element("p", *parts, class_="promise")


def budget_bar(balance: Balance) -> Markup:
    """Return a population's budget as a bar with its words."""
    total, left = balance.total, balance.left
    words = f"Budget of {balance.population}: ε = {left.epsilon_text} left of {total.epsilon_text}"
    bar = element(
        "meter", words, min="0", max=str(total.epsilon), value=str(max(left.epsilon, 0)),
        aria_label=words,
    )  # fmt: skip
    return element("div", element("p", words), bar)


def clock_text(moment: str) -> str:
    """Return a time of ISO 8601 in words, to the second."""
    return f"{moment[:19].replace('T', ' ')} UTC"


def redirect(path: str) -> RedirectResponse:
    """Send a browser on after a form."""
    return RedirectResponse(path, 303)


def error_page(request: Request, status: int, detail: str) -> Response:
    """Show an error; who has no session is sent to the login page."""
    if status == 401 and request.method == "GET":
        return redirect("/login")
    first = detail if "_" in detail.split(maxsplit=1)[0] else f"{detail[0].upper()}{detail[1:]}"
    words = alert(f"{first}.")
    again = "Go back in your browser to correct it, or " if request.method == "POST" else ""
    back = element("p", again, element("a", "go to the data sets", href="/"), ".")
    return respond("That did not work", words, back, status=status)


@router.get("/style.css")
def style() -> Response:
    """Serve the one style sheet."""
    return Response(_SHEET, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


@router.get("/favicon.ico")
def icon() -> Response:
    """Serve the picture that browsers ask for: a balance."""
    bar = element("path", d="M3 5h10M8 3v10M5 13h6", stroke="#0b4f8a", fill="none")
    pans = element("path", d="M1 9l2-4 2 4zM11 9l2-4 2 4z", fill="#0b4f8a")
    picture = element("svg", bar, pans, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 16 16")
    keep = {"Cache-Control": "max-age=86400"}
    return Response(picture, media_type="image/svg+xml", headers=keep)
