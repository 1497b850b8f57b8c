"""The layout of every page: head, navigation, forms, style, errors; all escaped, no script.

A form is a table of :class:`Field`, by which it is shown, filled in again and read back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from private_ate.errors import ArgumentError, PrivateAteError
from private_ate.report import markup
from private_ate.report.markup import STYLE, Markup, element, join
from private_ate.service.policy import Balance
from private_ate.service.vocabulary import Session

Skip = Annotated[int, Query(ge=0, le=10**9)]

router = APIRouter(include_in_schema=False)

_LINKS: Final = (
    ("/", "Data sets", "analyst curator auditor"),
    ("/queue", "Queue", "curator"),
    ("/requests", "My requests", "analyst"),
    ("/requests", "Requests", "curator auditor"),
    ("/manage", "Manage", "curator"),
    ("/tokens", "Users", "curator"),
    ("/history", "History", "curator auditor"),
)
_WIDE: Final = 5  # columns of a table that a phone has no room for
REQUIRED: Final = {"required": "required"}
DECIMAL: Final = {"inputmode": "decimal"}
WHOLE: Final = {"inputmode": "numeric"}


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
    top = [link("Skip to the content", "#content", class_="skip")]
    if session is not None:
        top.append(_navigation(session, here))
    main = element("main", element("h1", title), *parts, id="content")
    text = (
        "<!DOCTYPE html>\n" + element("html", head, element("body", *top, main), lang="en") + "\n"
    )
    headers = {"Refresh": f"{max(round(refresh), 1)}"} if refresh else {}
    return HTMLResponse(text, status, headers=headers)


def _navigation(session: Session, here: str) -> Markup:
    actor = session.actor
    links = [
        link(text, path, **({"aria_current": "page"} if path == here else {}))
        for path, text, roles in _LINKS
        if actor.role in roles.split()
    ]
    leave = form("/logout", session, button(f"Leave ({actor.name}, {actor.role})", quiet=True))
    return element("header", element("nav", *links, leave, aria_label="Pages"), class_="top")


def link(text: str, path: str, **attributes: str) -> Markup:
    """Return a link."""
    return element("a", text, href=path, **attributes)


def form(action: str, session: Session | None, *parts: str, **hidden: str) -> Markup:
    """Return a form that repeats its session's secret text."""
    fields = hidden if session is None else {**hidden, "form": session.form}
    concealed = [
        element("input", type="hidden", name=name, value=value) for name, value in fields.items()
    ]
    return element("form", *concealed, *parts, method="post", action=action)


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

    def show(self, text: str, error: str = "", place: str = "") -> Markup:
        """Return it with its label; ``place`` is its id where a page has several."""
        name, place = self.name, place or self.name
        label = element("label", self.label, for_=place)
        if self.read is read_switch:
            mark = {"checked": "checked"} if text == "yes" else {}
            box = element("input", type="checkbox", id=name, name=name, value="yes", **mark)
            beside = element("label", self.label, for_=name, class_="beside")
            return element("p", box, " ", beside)
        if self.options:
            entries = [
                element("option", words, value=value, **_chosen(value == text))
                for value, words in self.options
            ]
            return join(label, element("select", *entries, id=place, name=name))
        return join(label, *self._entry(text, error))

    def _entry(self, text: str, error: str) -> list[Markup]:
        """Return an input of text after what is said of it."""
        name, said, given = self.name, [], {"type": "text", **self.attributes}
        if self.hint:
            said.append(element("p", self.hint, class_="hint", id=f"{name}-hint"))
        if error:
            said.append(element("p", error, class_="warning", id=f"{name}-error", role="alert"))
            given["aria_invalid"] = "true"
        marks = (("hint", self.hint), ("error", error))
        if said:
            given["aria_describedby"] = " ".join(f"{name}-{mark}" for mark, words in marks if words)
        if "rows" in given:
            del given["type"]
            return [*said, element("textarea", text, id=name, name=name, **given)]
        return [*said, element("input", id=name, name=name, value=text, **given)]

    def write(self, value: object) -> str:
        """Return a value as the text that is read as it."""
        if self.read is read_open_list and value is None:
            return "all"
        if isinstance(value, bool) or value is None:
            return "yes" if value else ""
        return ", ".join(value) if isinstance(value, tuple) else str(value)


def _chosen(is_chosen: bool) -> dict[str, str]:  # noqa: FBT001  # the one thing to know
    return {"selected": "selected"} if is_chosen else {}


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
        # Beside a choice or a box to tick no error can stand.
        is_there = name in known and not known[name].options and known[name].read is not read_switch
        return cls(name if is_there else "", _sentence(str(error)))

    @property
    def above(self) -> list[Markup]:
        """The sentence, if it stands at no field."""
        return [alert(self.sentence)] if self.sentence and not self.name else []


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


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


def button(text: str, *, quiet: bool = False, **attributes: str) -> Markup:
    """Return a button that sends its form."""
    look = {"class_": "quiet"} if quiet else {}
    return element("button", text, type="submit", **look, **attributes)


def table(caption: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Return a table; the first cell of a row heads it. Rows of a wide one stack on a phone."""
    look = {"class_": "arms"} if len(names) >= _WIDE else {}
    shown = markup.table(caption, [(name, "") for name in names], rows, **look)
    return element("div", shown, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(caption: str, rows: Iterable[Sequence[str]], first: str = "Fact") -> Markup:
    """Return a table of names and values."""
    return table(caption, (first, "Value"), rows)


def turn_pages(path: str, skip: int, size: int, *, more: bool) -> Markup:
    """Return links to newer and older lines of a list; nothing if all of it is there."""
    links = [link("Newer", f"{path}?skip={max(skip - size, 0)}")] * bool(skip)
    links += [link("Older", f"{path}?skip={skip + size}")] * more
    return element("nav", *links, class_="turn", aria_label="More") if links else join()


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
    words = f"{detail}." if "_" in detail.split(maxsplit=1)[0] else _sentence(detail)
    again = "Go back in your browser to correct it, or " if request.method == "POST" else ""
    back = element("p", again, link("go to the data sets", "/"), ".")
    return respond("That did not work", alert(words), back, status=status)


@router.get("/style.css")
def style() -> Response:
    """Serve the one style sheet."""
    own = files("private_ate.service.web").joinpath("style.css").read_text("utf-8")
    return Response(STYLE + own, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


@router.get("/favicon.ico")
def icon() -> Response:
    """Serve the picture that browsers ask for: a balance."""
    bar = element("path", d="M3 5h10M8 3v10M5 13h6", stroke="#0b4f8a", fill="none")
    pans = element("path", d="M1 9l2-4 2 4zM11 9l2-4 2 4z", fill="#0b4f8a")
    picture = element("svg", bar, pans, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 16 16")
    keep = {"Cache-Control": "max-age=86400"}
    return Response(picture, media_type="image/svg+xml", headers=keep)
