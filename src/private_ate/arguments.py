"""Readers of public arguments: one per kind, each bounded before anything is parsed.

All callers (functions, option classes, the planner, the command line, ledgers) read their numbers
and words here, so that none accepts what another refuses. Nothing here ever sees a record, and a
text such as ``1e99999999`` is refused by its length and exponent, never expanded.
"""

from __future__ import annotations

import math
import numbers
import operator
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, NoReturn, SupportsIndex, cast

from private_ate.errors import ArgumentError

__all__ = [
    "Exact",
    "check_analyst",
    "check_name",
    "exact_number",
    "exact_shares",
    "fold_name",
    "one_of",
    "parse_memory",
    "read_confidence",
    "read_covariates",
    "read_deviations",
    "read_list",
    "read_names",
    "read_probability",
    "read_shares",
    "read_subgroups",
    "real_number",
    "settle",
    "shown",
    "truth_value",
    "whole_number",
]

Exact = str | float | Fraction | Decimal

_LONGEST = 400  # characters of a text, digits of a number, and the largest power of ten
_MEMORY_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_MOST_BITS = 1400  # of a numerator or denominator; 10⁴⁰⁰ has 1329
_NUMBER = re.compile(
    r"[+-]?(?:\d+/\d+|(?:\d+\.?\d*|\.\d+)(?:[eE](?P<exponent>[+-]?\d{1,4}))?)", re.ASCII
)

_LONGEST_NAME: Final = 200

# Small letters whose small or capital form is drawn like a Latin one, after case folding.
_CYRILLIC: Final = dict(zip("авеѕіјкмнорстухһԁԛԝѵґғё", "abesijkmhopctyxhdqwvrfe", strict=True))
_GREEK: Final = dict(zip("αβεζηικμνορτυχγωϲϳ", "abeznikmnoptuxywcj", strict=True))
_ARMENIAN: Final = dict(zip("օսոհցզաք", "ounhgqwp", strict=True))
_LATIN: Final = {"ı": "i", "ɑ": "a", "ɡ": "g", "ø": "o", "ł": "l"}
_LOOK_ALIKES: Final = str.maketrans({**_CYRILLIC, **_GREEK, **_ARMENIAN, **_LATIN})
# Scripts that are written beside Latin letters and hold no look-alike of one.
_BESIDE_LATIN: Final = {
    "LATIN",
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "KATAKANA-HIRAGANA",
    "HANGUL",
    "BOPOMOFO",
}


def exact_number(name: str, value: object, low: str, high: str) -> Fraction:
    """Return exactly the number that a decimal text says, from ``low`` to ``high``.

    Texts are decimal numbers or fractions of whole numbers. A float means its shortest decimal
    text: 0.1 is one tenth, not the binary number nearest to it.

    Examples
    --------
    >>> exact_number("delta", 0.1, "0", "1") == exact_number("delta", "1/10", "0", "1")
    True
    """
    number = _exactly(value)
    if number is None or not Fraction(low) <= number <= Fraction(high):
        _refuse(name, f"a decimal number from {low} to {high}, or a fraction such as 1/4", value)
    return number


def exact_shares(values: object, count: int, wanted: str) -> tuple[Fraction, ...]:
    """Return shares of ε exactly, each above 0 and below 1; ``wanted`` says which they are."""
    if not isinstance(values, tuple | list) or len(values) != count:
        raise ArgumentError(wanted)
    shares = tuple(exact_number("a share of epsilon", value, "0", "1") for value in values)
    if not all(0 < share < 1 for share in shares):
        msg = "each share of epsilon is positive and below 1"
        raise ArgumentError(msg)
    return shares


def real_number(name: str, value: object, low: float, high: float) -> float:
    """Return a finite number from ``low`` to ``high``; texts are read exactly, then rounded."""
    number = math.nan
    if isinstance(value, str | Decimal | Fraction):
        exact = _exactly(value)
        number = math.nan if exact is None or abs(exact) > 1e300 else float(exact)
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            number = math.nan
    if not low <= number <= high:
        _refuse(name, f"a number from {low:g} to {high:g}", value)
    return number


def whole_number(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return a whole number from ``low`` to ``high``, if there is one; 2.0 is none."""
    try:
        number = None if isinstance(value, bool) else operator.index(cast("SupportsIndex", value))
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        _refuse(name, f"a whole number from {low}" + (f" to {high}" if high else ""), value)
    return number


def truth_value(name: str, value: object) -> bool:
    """Return true or false."""
    # numpy's truth values go by name: the command line comes here without numpy.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        _refuse(name, "true or false", value)
    return bool(value)


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse what is not among the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        _refuse(name, " or ".join(repr(word) for word in allowed), value)


def parse_memory(limit: object) -> int:
    """Read an amount of memory such as ``"500MB"``, ``"1.5 GB"`` or a number of bytes."""
    text = str(limit).strip().upper().removesuffix("B").removesuffix("I")
    unit = text[-1:] if text[-1:] in _MEMORY_UNITS else ""
    try:
        size = float(text.removesuffix(unit)) * _MEMORY_UNITS[unit]
    except ValueError:
        size = math.nan
    if not 0 <= size < math.inf:
        msg = "the memory limit is a text such as 500MB or 2GB, or a number of bytes"
        raise ArgumentError(msg)
    return int(size)


def read_confidence(text: str) -> float | None:
    """Read a coverage, or none."""
    if text.strip().lower() == "none":
        return None
    return real_number("confidence (or none)", text, 0.5, 0.9999)


def read_probability(text: str | None) -> float | str | None:
    """Read a probability: a number, or the name of a column."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def read_deviations(texts: list[str] | None) -> float | dict[str, float] | None:
    """Read a guessed standard deviation, or those of several outcomes as COL=SD."""
    if not texts:
        return None
    pairs = [text.rpartition("=") for text in texts]
    if len(texts) == 1 and not pairs[0][1]:
        return real_number("the outcome's standard deviation", texts[0], 1e-150, 1e150)
    if not all(name and sign for name, sign, _ in pairs):
        msg = "of several outcomes write the standard deviation of each as COL=SD"
        raise ArgumentError(msg)
    return {
        name: real_number(f"the standard deviation of {name!r}", value, 1e-150, 1e150)
        for name, _, value in pairs
    }


def read_shares(text: str | None) -> list[float] | None:
    """Read the shares of several arms."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as cause:
        msg = f"write a share for each arm, such as 0.6,0.3,0.1, not {text[:60]!r}"
        raise ArgumentError(msg, parameter="arm shares") from cause


def read_list(text: str | None) -> list[str]:
    """Split a text at commas; an empty entry stays one, so that somebody refuses it."""
    return [] if text is None else [part.strip() for part in text.split(",")]


def read_names(text: str | None) -> list[str] | None:
    """Split a list of names at commas; None where there is none."""
    return None if text is None else [name for name in read_list(text) if name]


def read_covariates(text: str | None) -> list[str] | Literal["all"] | None:
    """Read a list of column names, or the word all."""
    return "all" if text is not None and text.strip() == "all" else read_names(text)


def read_subgroups(name: str, by: object) -> tuple[str, ...]:
    """Return columns and cuts as they are named; refuse what is no list of different texts."""
    named = (by,) if isinstance(by, str) else by
    texts = tuple(named) if isinstance(named, list | tuple) else (None,)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        msg = f"{name} is a list of columns and cuts, such as ['sex', 'age<65']"
        raise ArgumentError(msg, parameter=name)
    found = tuple(str(text).strip() for text in texts)
    if len(set(found)) != len(found):
        msg = f"{name} names a column or cut twice"
        raise ArgumentError(msg, parameter=name)
    return found


def check_name(role: str, name: object) -> str:
    """Return a name that can be printed and kept: 1 to 200 characters on one line."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        msg = f"the {role} is named by a printable text of 1 to {_LONGEST_NAME} characters"
        raise ArgumentError(msg)
    return name


def check_analyst(name: object) -> str:
    """Return an analyst's name; one that mixes Latin letters with others is refused.

    Letters that look like Latin ones count as these (see :func:`fold_name`); a letter of another
    alphabet that is left beside Latin letters could be a look-alike that nobody has listed.
    """
    checked = check_name("analyst", name)
    folded = fold_name(checked)
    if not folded:
        msg = "the analyst is named by more than spaces"
        raise ArgumentError(msg)
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in folded if letter.isalpha()}
    if "LATIN" in scripts and not scripts <= _BESIDE_LATIN:
        # A wholly Greek or Cyrillic name keeps letters that have no Latin twin: that is no mixture.
        given = unicodedata.normalize("NFKC", checked)
        if any(unicodedata.name(letter, "?").startswith("LATIN") for letter in given):
            msg = f"the analyst {checked!r} is written in letters of several alphabets; use one"
            raise ArgumentError(msg)
    return checked


def fold_name(name: str) -> str:
    r"""Return what all spellings of one name share: no case, no odd spaces, no look-alikes.

    Compatibility forms are resolved (NFKC), case is folded, runs of spaces are one space, and
    letters of other alphabets that are drawn like a Latin letter become it. Different names may
    fold to the same text; they then share one cap, which errs on the side of less.

    Examples
    --------
    >>> fold_name("  ANN  Lee ") == fold_name("ann lee") == fold_name("\u0410nn Lee")
    True
    """
    plain = unicodedata.normalize("NFKC", name).casefold().translate(_LOOK_ALIKES)
    plain = unicodedata.normalize("NFKC", plain).casefold()
    return " ".join(plain.split())


def settle(value: object, **checked: object) -> None:
    """Write checked fields into a frozen dataclass; for its ``__post_init__`` only."""
    for name, entry in checked.items():
        object.__setattr__(value, name, entry)


def shown(value: object) -> str:
    """Return the beginning of a plain argument, the type of any other."""
    if isinstance(value, str):
        return repr(value[:40])
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number that long"
    return str(value)[:40] if isinstance(value, int | float) else type(value).__name__


def _exactly(value: object) -> Fraction | None:
    """Return a number of bounded size exactly, None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, numbers.Rational):
        parts = int(value.numerator), int(value.denominator)
        return Fraction(*parts) if max(part.bit_length() for part in parts) <= _MOST_BITS else None
    if isinstance(value, numbers.Real):
        return _from_text(str(value))  # the shortest text that is this float, of numpy's too
    return None


def _from_text(text: str) -> Fraction | None:
    if len(text) > _LONGEST:
        return None
    found = _NUMBER.fullmatch(text.strip())
    if found is None or abs(int(found["exponent"] or 0)) > _LONGEST:
        return None
    try:
        return Fraction(text.strip())
    except ZeroDivisionError:
        return None


def _from_decimal(value: Decimal) -> Fraction | None:
    if not value.is_finite():
        return None
    if value == 0:
        return Fraction(0)
    small = abs(value.adjusted()) <= _LONGEST and len(value.as_tuple().digits) <= _LONGEST
    return Fraction(value) if small else None


def _refuse(name: str, wanted: str, value: object) -> NoReturn:
    msg = f"{name} is {wanted}, not {shown(value)}"
    raise ArgumentError(msg)
