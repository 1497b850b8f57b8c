"""Names in a ledger: what can be one, and which spellings mean the same analyst."""

from __future__ import annotations

import unicodedata

from private_ate.errors import ArgumentError

_LONGEST_NAME = 200

# Small letters whose small or capital form is drawn like a Latin one, after case folding.
_CYRILLIC = dict(zip("авеѕіјкмнорстухһԁԛԝѵґғё", "abesijkmhopctyxhdqwvrfe", strict=True))
_GREEK = dict(zip("αβεζηικμνορτυχγωϲϳ", "abeznikmnoptuxywcj", strict=True))
_ARMENIAN = dict(zip("օսոհցզաք", "ounhgqwp", strict=True))
_LATIN = {"ı": "i", "ɑ": "a", "ɡ": "g", "ø": "o", "ł": "l"}
_LOOK_ALIKES = str.maketrans({**_CYRILLIC, **_GREEK, **_ARMENIAN, **_LATIN})
# Scripts that are written beside Latin letters and hold no look-alike of one.
_BESIDE_LATIN = {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"}


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
