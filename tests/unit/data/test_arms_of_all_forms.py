"""Several arms get the same codes from frames, files and streams, whatever the rows hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from private_ate import Domain, Interval, Treatment, UndeclaredError
from private_ate.data.missing_rules import Reading
from private_ate.engines.open_table import open_table

ROWS = 300
LABELS = Treatment("t", arms=("none", "1", "high"), reference="1")
OTHERS = Treatment("t", arms=("none", "1", "high"), reference="1", other="high")
DOSES = Treatment("t", bins=(0, 1, 6, 100), labels=("zero", "few", "many"), reference="few")
# An entry, and its code under LABELS and DOSES; None where it is in no declared arm.
ENTRIES = [
    ("none", 1, None), (" none ", 1, None), ("None", None, None), ("1", 0, 0), ("1.0", 0, 0),
    (" 1", 0, 0), ("1e0", 0, 0), ("high", 2, None), ("HIGH", None, None), ("0.99", None, 1),
    ("6", None, 2), ("-7", None, 1), ("1e9", None, 2), ("5,5", None, None), ("", None, None),
    ("NA", None, None), ("canary-4711", None, None),
]  # fmt: skip


def study(treatment, data, level, *, memory=1 << 30, left_out=False):
    domain = Domain(treatment, ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    asked = {"treatment": None, "outcome": None, "covariates": None, "domain": domain}
    opened = open_table(
        data, {**asked, "level": level, "from_data": False}, memory=memory, engine="auto",
        master=None,
    )  # fmt: skip
    with opened.encoded(None, Reading(level, leave_out_undeclared=left_out)) as found:
        taking = np.ones(found.size, bool) if found.takes_part is None else found.takes_part
        return np.array(found.arm), np.array(taking)


def drawn():
    chosen = [ENTRIES[place] for place in np.random.default_rng(8).integers(0, len(ENTRIES), ROWS)]
    texts = [entry for entry, _, _ in chosen]
    frame = pl.DataFrame({"t": texts, "x": [0.5] * ROWS, "y": [0.25] * ROWS})
    return frame, chosen


def forms(frame, folder):
    frame.write_csv(folder / "study.csv")
    frame.write_parquet(folder / "study.parquet")
    yield pd.DataFrame(frame.to_dict(as_series=False)).astype(object), 1 << 30
    for memory in (1 << 30, 0):
        yield folder / "study.csv", memory


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("treatment", [LABELS, OTHERS, DOSES])
def test_frames_files_and_streams_give_the_codes_that_the_entries_say(treatment, level, tmp_path):
    frame, chosen = drawn()
    place = 2 if treatment is DOSES else 1
    codes = [row[place] for row in chosen]
    if treatment is OTHERS:
        codes = [2 if code is None else code for code in codes]
    known = np.array([code is not None for code in codes])
    wanted = np.array([0 if code is None else code for code in codes])
    is_left_out = level == "label" and treatment is not OTHERS
    for data, memory in forms(frame, tmp_path):
        arm, taking = study(treatment, data, level, memory=memory, left_out=is_left_out)
        if is_left_out:
            np.testing.assert_array_equal(arm, wanted[known])
            assert taking.all()
        else:
            np.testing.assert_array_equal(taking, known)
            np.testing.assert_array_equal(arm[known], wanted[known])


@pytest.mark.parametrize("treatment", [LABELS, OTHERS])
@pytest.mark.parametrize("memory", [1 << 30, 0])
def test_typed_texts_of_a_parquet_file_give_the_same_codes(treatment, memory, tmp_path):
    frame, _ = drawn()
    *_, (csv, _) = forms(frame, tmp_path)
    expected = study(treatment, csv, "sample")
    found = study(treatment, tmp_path / "study.parquet", "sample", memory=memory)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_doses_that_are_no_numbers_are_counted_in_the_words_of_doses(tmp_path):
    frame, _ = drawn()
    *_, (csv, _) = forms(frame, tmp_path)
    with pytest.raises(UndeclaredError, match=r"'t' is no number in .* write doses as numbers"):
        study(DOSES, csv, "label")


def test_twenty_arms_have_twenty_codes(tmp_path):
    labels = tuple(f"arm {place}" for place in range(20))
    entries = np.random.default_rng(1).permutation(np.repeat(labels, 3))
    frame = pl.DataFrame({"t": entries, "x": [0.5] * 60, "y": [0.5] * 60})
    treatment = Treatment("t", arms=labels, reference="arm 7")
    for data, memory in forms(frame, tmp_path):
        arm, taking = study(treatment, data, "label", memory=memory)
        assert taking.all()
        assert [treatment.coded[code] for code in arm] == entries.tolist()
