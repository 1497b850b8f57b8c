"""Declared knowledge: values, errors, and the way to TOML and back."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate.domain import (
    Binary,
    Categories,
    Domain,
    Interval,
    Outcome,
    Treatment,
    label_text,
    toml_text,
)
from private_ate.errors import DomainError

NUMBERS = st.floats(-1e150, 1e150, allow_nan=False)
NAMES = st.text(min_size=1, max_size=20)
LABELS = st.one_of(
    NAMES.filter(lambda text: text.strip()),
    st.integers(-(10**19), 10**19),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, missing, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return Interval(low, high, draw(st.sampled_from([None, missing])))


@st.composite
def categories(draw: st.DrawFn) -> Categories:
    labels = draw(st.lists(LABELS, min_size=2, max_size=5, unique_by=label_text))
    return Categories(*labels, other=draw(st.sampled_from([None, *labels])))


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    names = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    treated, control = draw(st.lists(LABELS, min_size=2, max_size=2, unique_by=label_text))
    bounds = draw(st.one_of(st.none(), intervals(), st.just(Binary()), st.just(Binary(missing=1))))
    kinds = st.one_of(intervals(), categories(), st.sampled_from([Binary(), Binary(missing=0)]))
    covariates = {name: draw(kinds) for name in names[2:]}
    return Domain(Treatment(names[0], treated, control), Outcome(names[1], bounds), covariates)


@given(domains())
def test_a_domain_survives_the_way_to_toml_and_back(domain):
    again = Domain.from_toml(domain.to_toml())
    assert again == domain
    assert list(again.covariates) == list(domain.covariates)
    assert [*map(type, again.covariates.values())] == [*map(type, domain.covariates.values())]
    assert again.outcome.bounds is None or again.bounds.is_binary is domain.bounds.is_binary


@pytest.mark.parametrize(
    "name",
    [
        "a.b",
        'say "hi"',
        "back\\slash",
        "tab\there",
        "Größe",
        "年龄",
        "a=b",
        "[x]",
        "new\nline",
    ],
)
def test_odd_names_survive_the_way_through_a_file(name, tmp_path):
    domain = Domain(Treatment("t", name, "no"), "y", {name: Categories(name + "x", "z")})
    domain.write(tmp_path / "domain.toml")
    assert Domain.read(tmp_path / "domain.toml") == domain


def test_features_are_named_after_columns_and_categories():
    domain = Domain("t", "y", {"age": Interval(0, 1), "g": Categories(1, 2.5, True + 2)})
    assert domain.features == ("age", "g=1", "g=2.5", "g=3")


def test_one_label_has_one_text():
    assert {label_text(label) for label in (1, 1.0, True, "1", " 1 ")} == {"1"}
    assert label_text(False) == label_text(0) == label_text(-0.0) == "0"
    assert label_text(2.5) == "2.5"


@pytest.mark.parametrize("label", ["", "  ", None, [], math.nan, math.inf, {"a": 1}])
def test_what_cannot_be_a_label_is_refused(label):
    with pytest.raises(DomainError, match="a label is"):
        label_text(label)


def test_missing_values_count_as_the_middle_or_as_declared():
    assert Interval(0, 10).fill == 5
    assert Interval(0, 10, missing=2).fill == 2
    assert Interval(-1e150, 1e150).width == 2e150
    assert Binary().fill == 0.5
    assert Binary(missing=0).fill == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(2, 1), "low bound"),
        (lambda: Interval(math.nan, 1), "finite"),
        (lambda: Interval(0, math.inf), "finite"),
        (lambda: Interval(0, 1e151), "1e150"),
        (lambda: Interval("0", 1), "a number, not str"),
        (lambda: Interval(True, 1), "a number, not bool"),
        (lambda: Interval(0, 1, missing=3), "outside the bounds"),
        (lambda: Binary(0, 2), "binary outcome is 0 or 1"),
        (lambda: Categories("a"), "at least two"),
        (lambda: Categories("a", "a "), "at least two different"),
        (lambda: Categories(1, True), "at least two different"),
        (lambda: Categories("a", "b", other="c"), "'c' is not among"),
        (lambda: Treatment(""), "non-empty"),
        (lambda: Treatment("t", 1, "1"), "same label"),
        (lambda: Treatment("t", []), "a label is"),
        (lambda: Domain("t", "t"), "'t' is declared twice"),
        (lambda: Domain("t", "y", {"y": Interval(0, 1)}), "'y' is declared twice"),
        (lambda: Domain("t", "y", {"x": (0, 1)}), "Interval or by Categories"),
        (lambda: Domain(5, "y"), "the treatment is a column name"),
        (lambda: Domain("t", ("y", (0, 1))), "the outcome is a column name or a pair"),
        (lambda: Domain("t", "y").bounds, "declare Interval\\(lo, hi\\)"),
    ],
)
def test_inconsistent_declarations_are_refused_with_a_sentence(make, message):
    with pytest.raises(DomainError, match=message):
        make()


HEAD = "[treatment]\ncolumn = 't'\n[outcome]\ncolumn = 'y'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[treatment", "not valid TOML"),
        ("", "lacks the table"),
        ("treatment = 3\n[outcome]\ncolumn = 'y'", "lacks the table"),
        ("[treatment]\n[outcome]\ncolumn = 'y'", "lacks its column"),
        (HEAD + "[extra]", "unknown table"),
        (HEAD + "low = 0", "'outcome' lacks its high bound"),
        (HEAD + "low = 0\nhigh = 'x'", "a number, not str"),
        (HEAD + "[covariates]\nx = 3", "'x' is a table"),
        (HEAD + "[covariates.x]\nlow = 1", "'x' lacks its high bound"),
        (HEAD + "[covariates.x]\nlow = 1\nhigh = 2\nmin = 3", "unknown key 'min'"),
        (HEAD + "[covariates.x]\ncategories = 'a'", "a list of labels"),
        (HEAD + "[covariates.x]\ncategories = ['a', []]", "a label is"),
        (HEAD + "[covariates.x]\nlow = ???\nhigh = ???", "line 6 .*fill in low of covariate"),
        ("covariates = 1\n" + HEAD, "is a table of columns"),
    ],
)
def test_a_domain_file_that_is_wrong_says_where(text, message):
    with pytest.raises(DomainError, match=message):
        Domain.from_toml(text)


def test_a_domain_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DomainError, match="cannot be read; is the path right"):
        Domain.read(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DomainError, match="cannot be read"):
        Domain.read(tmp_path / "binary.toml")


def test_toml_values_are_written_plainly():
    assert [toml_text(value) for value in (True, 1, 1.5, 1e300, "a")] == [
        "true", "1", "1.5", "1e+300", '"a"'
    ]  # fmt: skip
