"""Write the commands of docs/reference/command-line.md, from the commands themselves.

The site calls it when it is built; ``python docs/make_reference.py`` prints the same.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from private_ate.cli.app import app


def commands() -> str:
    """Return every command with its arguments, flags and an example."""
    root: Any = get_command(app)
    parts = ["## All commands\n\n", _options(root)]
    for name, command in root.commands.items():
        parts += _sections(f"private-ate {name}", command)
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _sections(name: str, command: Any) -> Iterator[str]:
    yield f"## {name}\n\n{_text(command.help)}"
    if hasattr(command, "commands"):
        for part, below in command.commands.items():
            yield f"### {name} {part}\n\n{_usage(f'{name} {part}', below)}{_text(below.help)}"
            yield _options(below) + _example(below)
    else:
        yield _usage(name, command) + _options(command) + _example(command)


def _usage(name: str, command: Any) -> str:
    places = [_place(each) for each in command.params if _is_argument(each)]
    return f"```text\n{' '.join([name, *places, '[OPTIONS]'])}\n```\n\n"


def _place(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _options(command: Any) -> str:
    rows = []
    for each in command.params:
        if getattr(each, "hidden", False) or each.name in ("install_completion", "show_completion"):
            continue
        flag = _place(each) if _is_argument(each) else ", ".join(each.opts)
        value = "" if _is_argument(each) else _value(each)
        cells = (f"`{flag}{value}`", _default(each), _text(each.help))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    if not rows:
        return ""
    return "| argument or flag | default | what it says |\n|---|---|---|\n" + "".join(rows)


def _value(option: Any) -> str:
    if option.is_flag:
        return ""
    return f" {option.metavar or option.name.upper()}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if default is None or default is False or default in ([], ()):
        return ""
    return f"`{default}`"


def _text(help_text: str | None) -> str:
    text = inspect.cleandoc(help_text or "")
    return re.sub(r"\s*\n(?!\n)\s*", " ", text) if "\n\n" not in text else text


def _example(command: Any) -> str:
    epilog = command.epilog or ""
    if not epilog.startswith("Example: "):
        return ""
    return f"\n```text\n{epilog.removeprefix('Example: ')}\n```\n"


if __name__ == "__main__":
    print(commands())
