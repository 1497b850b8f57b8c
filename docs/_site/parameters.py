"""Gives every parameter and field on the API page its own row: type and default are its own.

A docstring may describe several parameters in one entry, and then the page would show all of them
with the type and default of the first. Here names, types and defaults come from the signature, and
docstrings add words. Needs the documentation's dependencies.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["OwnRows"]

# Where parameters are described that many functions share, the first of them first.
_SOURCES = (
    "api.estimate_ate", "effects.p_value", "planning.api.plan_ate",
    "checking.check.check_data",
)  # fmt: skip
# A docstring's :meth:`to_text` is `to_text` on the page.
_ROLE = re.compile(r":(?:meth|func|class|attr|mod):`~?([^`]+)`")


class OwnRows(griffe.Extension):
    """Fills sections of parameters and attributes from signatures after a package is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Look at every function and class of the package."""
        self._shared = {
            each.name: each.description
            for name in reversed(_SOURCES)
            for section in pkg[name].docstring.parse("numpy")
            if section.kind is griffe.DocstringSectionKind.parameters
            for each in section.value
        }
        self._visit(pkg, set())

    def _visit(self, item: Any, seen: set[str]) -> None:
        if item.is_alias or item.path in seen:
            return
        seen.add(item.path)
        if item.docstring is not None:
            item.docstring.value = _ROLE.sub(r"`\1`", item.docstring.value)
        if item.is_function and item.docstring is not None:
            _fill_parameters(item, self._shared)
        if item.is_class and item.docstring is not None and "dataclass" in item.labels:
            _fill_attributes(item)
        if item.is_module or item.is_class:
            for member in item.members.values():
                self._visit(member, seen)


def _fill_parameters(function: griffe.Function, shared: dict[str, str]) -> None:
    listed = [each for each in function.parameters if each.name not in ("self", "cls")]
    sections = function.docstring.parse("numpy")
    kind = griffe.DocstringSectionKind.parameters
    held = _section(sections, kind)
    described = all(each.name in shared for each in listed)
    if held is None and (len(listed) < 2 or not described):
        return  # the signature has the names, and the text says what they are
    known = {} if held is None else {each.name: each for each in held.value}
    rows = []
    for each in listed:
        listing = known.get(each.name)
        said = listing.annotation if listing and _alone(function, each.name) else None
        rows.append(
            griffe.DocstringParameter(
                each.name,
                description=listing.description if listing else shared.get(each.name, ""),
                annotation=said or _spelled(function, each.annotation),
                value=each.default,
            )
        )
    _place(function, sections, held, griffe.DocstringSectionParameters(rows))


def _fill_attributes(owner: griffe.Class) -> None:
    fields = [
        member
        for member in owner.members.values()
        if member.is_attribute and "instance-attribute" in member.labels
        and not member.name.startswith("_") and member.annotation is not None
    ]  # fmt: skip
    sections = owner.docstring.parse("numpy")
    held = _section(sections, griffe.DocstringSectionKind.attributes)
    known = {
        name.strip(): each.description
        for each in ([] if held is None else held.value)
        for name in each.name.split(",")
    }
    rows = [
        griffe.DocstringAttribute(
            each.name,
            description=known.get(each.name, ""),
            annotation=_spelled(owner, each.annotation),
        )
        for each in fields
    ]
    if rows:
        _place(owner, sections, held, griffe.DocstringSectionAttributes(rows))


def _spelled(owner: Any, annotation: Any) -> Any:
    """Spell a name out that stands for a choice of words."""
    if not str(annotation).isidentifier():
        return annotation
    try:
        found = owner.modules_collection[owner.resolve(str(annotation))]
    except (KeyError, griffe.GriffeError):
        return annotation
    if found.is_alias:
        found = found.final_target
    is_choice = found.is_attribute and str(found.value).startswith("Literal[")
    return found.value if is_choice else annotation


def _section(sections: list[Any], kind: griffe.DocstringSectionKind) -> Any:
    return next((each for each in sections if each.kind is kind), None)


def _alone(owner: Any, name: str) -> bool:
    """Say whether an entry of the docstring is about this parameter alone."""
    return re.search(rf"^{name}( :|$)", owner.docstring.value, re.MULTILINE) is not None


def _place(owner: Any, sections: list[Any], old: Any, new: Any) -> None:
    """Put a section into the place of an older one, or after the text."""
    if old is None:
        texts = [each.kind is griffe.DocstringSectionKind.text for each in sections]
        sections.insert(texts.index(False) if False in texts else len(sections), new)
    else:
        sections[sections.index(old)] = new
    owner.docstring.__dict__["parsed"] = sections
