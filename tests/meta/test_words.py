"""One word has one meaning, and names and sentences are in the words of statistics and privacy."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "private_ate"
DOCS = ROOT / "docs"

# Words that are not used, with their forms, and what is said instead.
NOT_USED = {
    "bend bends bending bent": "non-linear term, spline term; of a problem: biases",
    "desk desks": "operations",
    "door doors": "entry point, interface",
    "doubt doubts doubted": "bias bound",
    "law laws": "distribution",
    "likeness": "similarity",
    "people": "persons (whom the promise is about), units (in texts), users, readers",
    "tilt tilts tilted": "estimand weight; of an input: perturbation",
    "till tills": "until; of a ledger: charge",
    "told": "given, reported, known",
    "worth": "effective sample size; deserves",
}

# Names that are public or of other packages, by module, and terms older than this project.
ALLOWED_NAMES = {
    ("checking/findings.py", "bends"): "`DataCheck.bends` is public and in its JSON",
    ("service/client.py", "told"): "`Planned.told` and `Asked.told` are public",
    ("settings.py", "worth"): "a key of released settings",
    ("methods/blocks/settings.py", "worth"): "a key of released settings",
    ("methods/calibrated/settings.py", "worth"): "a key of released settings",
    ("cli/flags.py", "get_params"): "replaces a method of click",
    ("engines/spark.py", "batch"): "a record batch of Arrow",
    ("engines/spark_table.py", "batch"): "a record batch of Arrow",
    ("service/web/authentication.py", "Buckets"): "token buckets limit the rate of requests",
}
ALLOWED_PROSE = {
    "back-door": "the criterion and the variables of that name in causal inference",
    "told : dict": "documents the public attribute of that name",
    "worth : ": "documents the key of the settings of that name",
    '"bends"': "the severity of a finding",
}

# Words with one meaning in names, docstrings and pages, and what is not said for the same thing.
ONE_MEANING = {
    "allocation": ("how one ε is split between the steps of a method", ()),
    "bias bound": ("what a method says may be left of bias, of unknown sign", ()),
    "block": ("rows that a method aggregates: `blocks` and the published block methods", ()),
    "chunk": ("rows in one step of an engine", ("batch", "minibatch", "shard")),
    "distribution": ("of noise, outcomes or scores", ()),
    "effective sample size": ("rows of equal weight with the same variance (Kish)", ()),
    "estimand weight": ("the function of the score that defines an estimand", ()),
    "fold": ("a sum over all chunks of rows, or one part of the rows in cross-fitting", ()),
    "grid": ("values at which noise is drawn, or at which an experiment is run", ()),
    "level": ("of privacy: label or sample; of a category: one of its labels", ()),
    "options": ("what a caller sets", ("params", "kwargs")),
    "person": ("whom the promise is about; may have several rows", ("individual", "customer")),
    "plan": ("what is predicted before ε is spent", ()),
    "row": ("a line of the table, in code", ()),
    "settings": ("what a release reports of how it was made", ()),
    "stratum": ("rows between two cuts of a score", ("bucket", "buckets")),
    "subgroup": ("units for which an effect of their own is released", ("cohort", "cohorts")),
    "unit": ("a row, in texts for statisticians", ()),
}

_INSTEAD = {form: use for forms, use in NOT_USED.items() for form in forms.split()}
_WORDS = re.compile(rf"\b({'|'.join(_INSTEAD)})\b", re.IGNORECASE)
_ALLOWED = re.compile("|".join(map(re.escape, ALLOWED_PROSE)))
_CODE = re.compile(r"^```.*?^```$|`[^`]*`|<!--.*?-->|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
MODULES = sorted(SOURCES.rglob("*.py"))
_ALL = [*_INSTEAD, *(other for _, others in ONE_MEANING.values() for other in others)]
PAGES = [ROOT / name for name in (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "r/README.md",
)] + sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "adr")  # fmt: skip


def words_in(text):
    """Return the words of a text that are not used, each with what to write instead."""
    found = {word.lower() for word in _WORDS.findall(_ALLOWED.sub(" ", text))}
    return {word: _INSTEAD[word] for word in sorted(found)}


def defined_in(node):
    """Return the name that a node of a syntax tree gives to something, if it does."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return name if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.alias):
        return node.asname
    if isinstance(node, ast.keyword):
        return None  # it was named where the function is
    return getattr(node, "name", None) or getattr(node, "arg", None)


def names_and_docstrings(text):
    """Return the names that a module gives, and its docstrings."""
    names, docstrings = set(), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstrings.append(ast.get_docstring(node, clean=False) or "")
        name = defined_in(node)
        if name is not None:
            names.add(name)
    return names, docstrings


def comments_of(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return (token.string for token in tokens if token.type == tokenize.COMMENT)


@cache
def parts_of(name):
    """Return the words of a name: `block_sums` and `BlockSums` are made of two."""
    return tuple(part.lower() for part in _PARTS.findall(name))


@cache
def sources():
    """Return name, names, docstrings and comments of every module that may hold such a word."""
    found = []
    for path in MODULES:
        module = path.relative_to(SOURCES).as_posix()
        text = path.read_text("utf-8")
        written = f"{module} {text}".lower()
        if not any(word in written for word in _ALL):
            continue  # it need not be parsed
        names, docstrings = names_and_docstrings(text)
        prose = "\n".join([*docstrings, *comments_of(text)])
        found.append((module, names | {path.stem, path.parent.name}, prose))
    return found


def wrong_names(instead):
    """Return each name with a word of a table, but those that are allowed, and the right word."""
    return {
        (module, name): instead[part]
        for module, names, _ in sources()
        for name in names
        for part in parts_of(name)
        if part in instead and (module, name) not in ALLOWED_NAMES
    }


def test_no_name_has_a_word_that_is_not_used():
    assert wrong_names(_INSTEAD) == {}


def test_no_docstring_and_no_comment_has_a_word_that_is_not_used():
    assert {module: words for module, _, prose in sources() if (words := words_in(prose))} == {}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_has_a_word_that_is_not_used(path):
    assert words_in(_CODE.sub(" ", _ALLOWED.sub(" ", path.read_text("utf-8")))) == {}


def test_no_name_has_a_second_word_for_what_has_one():
    others = {each: word for word, (_, others) in ONE_MEANING.items() for each in others}
    assert wrong_names(others) == {}


def test_a_word_that_is_not_used_is_found_wherever_it_stands():
    text = '"""Draw from a law."""\n\nclass TiltedRows:  # what is told\n    doors = 1\n'
    names, docstrings = names_and_docstrings(text)

    assert {part for name in names for part in parts_of(name)} >= {"tilted", "doors"}
    assert words_in("\n".join(docstrings)) == {"law": "distribution"}
    assert set(words_in(" ".join(comments_of(text)))) == {"told"}
    assert words_in("the back-door set, which `law` names") == {"law": "distribution"}


def test_every_allowed_name_is_still_there():
    given = {(module, name) for module, names, _ in sources() for name in names}
    text = "\n".join(path.read_text("utf-8") for path in (*MODULES, *PAGES))

    assert [each for each in ALLOWED_NAMES if each not in given] == []
    assert [each for each in ALLOWED_PROSE if each not in text] == []
