"""At sample level the oddest records give a release of the same shape and say nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from private_ate import Categories, Domain, Interval, Release, Treatment, estimate_ate

DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"x": Interval(0, 1), "w": Interval(-5, 5), "g": Categories("a", "b")},
)


def plain(rows: int = 40) -> dict[str, list[object]]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.random(rows).tolist(),
        "w": rng.normal(size=rows).tolist(),
        "g": rng.choice(["a", "b"], rows).tolist(),
        "t": rng.integers(0, 2, rows).astype(float).tolist(),
        "y": rng.normal(5, 1, rows).tolist(),
    }


def shape(value: object) -> object:
    """Return the structure of plain values with every number replaced by its type."""
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [shape(entry) for entry in value]
    return value if isinstance(value, str) else type(value).__name__


def release_of(data: object, **kwargs: object) -> Release:
    return estimate_ate(
        data, domain=DOMAIN, level="sample", epsilon=1, method="published", seed=1, **kwargs
    )


def replaced(column: str, entry: object) -> pl.DataFrame:
    columns = plain()
    columns[column][7] = entry
    return pl.DataFrame(columns, strict=False)


@pytest.mark.parametrize("column", ["x", "w", "t", "y"])
@pytest.mark.parametrize(
    "entry", [float("nan"), float("inf"), float("-inf"), -0.0, None, 1e308, -1e308, 5e-324, 17.0]
)
def test_an_odd_number_changes_neither_shape_nor_mood(column, entry):
    usual = release_of(pl.DataFrame(plain()))
    odd = release_of(replaced(column, entry))

    assert np.isfinite(odd.ate)
    assert shape(odd.to_dict()) == shape(usual.to_dict())


@pytest.mark.parametrize("entry", [None, "", "c", " a ", "nan", "\x00", "ä" * 1000])
def test_an_odd_label_changes_neither_shape_nor_mood(entry):
    usual = release_of(pl.DataFrame(plain()))
    assert shape(release_of(replaced("g", entry)).to_dict()) == shape(usual.to_dict())


@pytest.mark.parametrize(
    "change",
    [
        {"t": [1.0] * 40},
        {"t": [0.0] * 40},
        {"t": [None] * 40},
        {"t": [3.0] * 40},
        {"x": [0.3] * 40},
        {"x": [0.0] * 20 + [1.0] * 20, "t": [0.0] * 20 + [1.0] * 20},
        {"x": [None] * 40, "w": [None] * 40, "g": [None] * 40, "t": [None] * 40, "y": [None] * 40},
        {"y": [0.0] * 40},
        {"y": [-1e308] * 20 + [1e308] * 20},
    ],
    ids=["treated", "control", "missing", "undeclared", "constant", "separable", "nothing",
         "zero", "extreme"],
)  # fmt: skip
def test_one_sided_constant_and_separable_data_are_released_like_any_other(change):
    usual = shape(release_of(pl.DataFrame(plain())).to_dict())

    odd = release_of(pl.DataFrame(plain() | change, strict=False))

    assert np.isfinite(odd.ate)
    assert shape(odd.to_dict()) == usual


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("treated", [0.0, 1.0])
def test_very_few_rows_are_released(rows, treated):
    columns = {name: entries[:rows] for name, entries in plain().items()}
    columns["t"] = [treated] * rows

    for seed in range(20):
        release = estimate_ate(
            pl.DataFrame(columns), domain=DOMAIN, level="sample", epsilon=1, seed=seed,
            method="published",
        )  # fmt: skip
        assert np.isfinite(release.ate)
        assert release.n == rows
        assert set(release.settings["noisy_arms"]) == {"treated", "control"}


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-6", "1000", "1e6"])
@pytest.mark.parametrize("rows_per_person", [1, 1_000_000])
def test_extreme_budgets_and_rows_per_person_neither_wrap_nor_warn(epsilon, rows_per_person):
    for level in ("label", "sample"):
        release = estimate_ate(
            pl.DataFrame(plain()), domain=DOMAIN, level=level, epsilon=epsilon,
            rows_per_person=rows_per_person, seed=3,
        )  # fmt: skip
        assert np.isfinite(release.ate)
        assert release.noise_interval[0] <= release.ate <= release.noise_interval[1]


@pytest.mark.parametrize("bounds", [(-1e150, 1e150), (0.0, 1e-300), (1e15, 1e15 + 2)])
def test_extreme_outcome_bounds_neither_wrap_nor_warn(bounds):
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(*bounds)), DOMAIN.covariates)
    for level in ("label", "sample"):
        release = estimate_ate(pl.DataFrame(plain()), domain=domain, level=level, epsilon=1, seed=3)
        assert np.isfinite(release.ate)


def test_no_covariates_at_all_are_fine_at_both_levels():
    frame = pl.DataFrame({name: plain()[name] for name in ("t", "y")})
    for level in ("label", "sample"):
        release = estimate_ate(
            frame,
            domain=Domain(Treatment("t", 1, 0), ("y", Interval(0, 10))),
            level=level,
            epsilon=1,
            seed=1,
        )
        assert np.isfinite(release.ate)


def test_a_canary_is_never_in_an_error_a_repr_or_a_release(capfd):
    canary = 4711.424242
    frame = pl.DataFrame(plain() | {"y": [canary] * 40, "x": [canary] * 40})
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10_000)), {"x": Interval(0, 10_000)})
    # Seeded: one unseeded release in two hundred has these four digits somewhere by chance.
    release = estimate_ate(frame, domain=domain, level="sample", epsilon=1, seed=5)
    texts = [repr(release), str(release), release.to_json()]
    for bad in (
        {"domain": Domain(Treatment("t", 1, 0), ("x", Interval(0, 1)), {"g": Interval(0, 1)})},
        {"domain": Domain(Treatment("z", 1, 0), ("y", Interval(0, 1)))},
        {"treatment": "t", "outcome": "y"},
        {"domain": domain, "neighbors": 0},
    ):
        with pytest.raises(ValueError, match=r"column|domain|bounds|whole") as caught:
            estimate_ate(frame, level="sample", epsilon=1, **bad)
        texts.append(str(caught.value))

    assert not any("4711" in text for text in texts)
    assert capfd.readouterr() == ("", "")


def test_pandas_objects_of_every_kind_are_released():
    entries = [
        None,
        pd.NA,
        pd.NaT,
        "x",
        b"y",
        1,
        2.5,
        True,
        [1],
        {"a": 1},
        object(),
        1 + 2j,
        10**400,
    ]
    columns = {name: pd.Series(entries, dtype=object) for name in ("x", "w", "g", "t", "y")}
    assert release_of(pd.DataFrame(columns)).n == len(entries)


@pytest.mark.parametrize("method", ["published", "difference_in_means"])
def test_a_treatment_that_is_missing_or_undeclared_counts_as_control_in_the_paper(method):
    domain = Domain(Treatment("t", treated="yes", control="no"), ("y", Interval(0, 1)))
    data = {"y": [0.5] * 6, "t": ["yes", "no", None, "maybe", "", "YES"]}
    other = data | {"t": ["yes", "no", "no", "no", "no", "no"]}

    releases = [
        estimate_ate(
            pl.DataFrame(each), domain=domain, level="sample", epsilon=1, seed=6,
            method=method,
        )
        for each in (data, other)
    ]  # fmt: skip
    assert releases[0] == releases[1]


@pytest.mark.parametrize("method", ["auto", "blocks"])
def test_a_treatment_that_is_missing_or_undeclared_takes_no_part_in_ours(method):
    domain = Domain(Treatment("t", treated="yes", control="no"), ("y", Interval(0, 1)))
    data = {"y": [0.5] * 6, "t": ["yes", "no", None, "maybe", "", "YES"]}
    other = data | {"y": [0.5, 0.5, 1.0, 0.0, 1.0, 1.0], "t": ["yes", "no", "?", "", None, "x"]}

    releases = [
        estimate_ate(
            pl.DataFrame(each), domain=domain, level="sample", epsilon=1, seed=6, method=method
        )
        for each in (data, other)
    ]
    assert releases[0] == releases[1]
