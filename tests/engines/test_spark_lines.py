"""Lines of a CSV file on Spark are the records that they are on one machine."""

import pickle
import random

import numpy as np
import pytest

pytest.importorskip("pyspark")

from private_ate import Categories, CsvFile, Domain, Interval, SchemaError, Treatment, estimate_ate
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.engines.spark import SparkStudy
from private_ate.engines.spark_table import read_frame

ROWS = 40_000
PARTITION_BYTES = 200_000
DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"x": Interval(0, 10), "c": Categories("a", "b", "other")},
)
NOTES = [
    b'"', b"", b'"a,b"', b"\r", b"\x00", b"\xff\xfe", b'"a""b', "\u2028é".encode(),
    b'"two', b'lines"',
]  # fmt: skip
ODD = [b"", b'"0.5"\r\r', b"1,2", b'"', b"\r", b'1,"b']


def some_lines(count, seed):
    rng = random.Random(seed)
    for number in range(count):
        if number % 50 == 7:
            yield rng.choice(ODD)
            continue
        label, arm, note = rng.choice([b"a", b'"b"', b"z"]), rng.randrange(2), rng.choice(NOTES)
        yield b"%d,%s,%d,%d,%s" % (rng.randrange(11), label, arm, rng.randrange(11), note)


def write(path, lines):
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join([b"x,c,t,y,note", *lines]))
    return path


def blocks_of(path):
    file = path if isinstance(path, CsvFile) else str(path)
    study = SparkStudy.encode(read_frame(file), DOMAIN)
    try:
        blocks = [pickle.loads(block) for _, block in study.blocks.collect()]  # noqa: S301
        return blocks, study.starts
    finally:
        study.close()


@pytest.mark.usefixtures("session")
def test_odd_lines_are_encoded_on_a_cluster_as_they_are_in_memory(tmp_path):
    lines = list(some_lines(ROWS, 1))
    lines[5_000] = b"1,a,1," + b"z" * 200_000
    path = write(tmp_path / "odd.csv", lines)

    blocks, _ = blocks_of(path)

    held = LocalStudy.encode(read_table(path), DOMAIN)
    assert held.size == ROWS
    expected = (held.covariates, held.treatment, held.outcome)
    for place, whole in enumerate(expected):
        np.testing.assert_array_equal(
            np.concatenate([block[place] for block in blocks], axis=-1), whole
        )


@pytest.mark.usefixtures("session")
def test_a_replaced_line_moves_no_row_to_another_block(tmp_path):
    lines = list(some_lines(ROWS, 2))
    before, starts = blocks_of(write(tmp_path / "before.csv", lines))
    lines[11] = b'1,a,1,3,"' + b"z" * 1_500_000

    after, moved = blocks_of(write(tmp_path / "after.csv", lines))

    assert starts == moved
    assert [block[1].size for block in before] == [block[1].size for block in after]
    changed = np.flatnonzero(before[0][2] != after[0][2]).tolist()
    assert set(changed) <= {11}
    for one, other in zip(before[1:], after[1:], strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


@pytest.mark.usefixtures("session")
def test_quotes_around_line_ends_do_not_join_lines_on_a_cluster(tmp_path):
    plain = [b"1,a,1,5,n", b"2,b,0,4,n"] * 30
    told = []
    for note in (b'"two\nlines"', b'"' + b"\n" * 39 + b'"', b'"' + b"z" * 200_000 + b'\nend"'):
        path = write(tmp_path / "note.csv", [*plain, b"1,a,1,5," + note])
        steps = []

        release = estimate_ate(
            path, domain=DOMAIN, level="sample", epsilon=1, engine="spark", seed=1,
            progress=lambda *step, steps=steps: steps.append(step),
        )  # fmt: skip

        assert release.n == path.read_bytes().count(b"\n")
        told.append(steps)
    assert told[0] == told[2]
    assert {total for _, _, total in told[0]} == {1}


@pytest.mark.usefixtures("session")
def test_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path):
    folder = tmp_path / "parts.csv"
    folder.mkdir()
    lines = list(some_lines(300, 3))
    write(folder / "a.csv", lines[:20])
    write(folder / "b.csv", lines[20:])

    blocks, _ = blocks_of(folder)

    held = LocalStudy.encode(read_table(write(tmp_path / "whole.csv", lines)), DOMAIN)
    np.testing.assert_array_equal(blocks[0][2], held.outcome)
    (folder / "c.csv").write_text("x,c,t,y,other\n1,a,1,2,n\n")
    with pytest.raises(SchemaError, match="the same header line"):
        read_frame(str(folder))


@pytest.mark.usefixtures("session")
def test_semicolons_and_decimal_commas_are_read_as_on_one_machine(tmp_path):
    rng = random.Random(3)
    numbers = ["1,5", "2.5", "1.234,5", "7", "", '"3,25"', ",5"]
    lines = [
        f"{rng.choice(numbers)};{rng.choice('abz')};{rng.randrange(2)};{rng.choice(numbers)}"
        for _ in range(2000)
    ]
    path = tmp_path / "commas.dat"
    path.write_text("\n".join(["x;c;t;y", *lines]), "utf-8")
    file = CsvFile(path, sep=";", decimal=",")

    blocks, _ = blocks_of(file)

    held = LocalStudy.encode(read_table(file), DOMAIN)
    assert held.size == 2000
    for place, whole in enumerate((held.covariates, held.treatment, held.outcome)):
        np.testing.assert_array_equal(
            np.concatenate([block[place] for block in blocks], axis=-1), whole
        )


@pytest.mark.usefixtures("session")
def test_cp1252_is_read_as_on_one_machine_and_utf16_is_refused_in_words(tmp_path):
    lines = [f"{row % 11},{'äé€'[row % 3]},{row % 2},{row % 7}" for row in range(500)]
    text = "\n".join(["x,größe,t,y", *lines, ""])
    (tmp_path / "windows.csv").write_bytes(text.encode("cp1252"))
    (tmp_path / "wide.csv").write_bytes(text.encode("utf-16"))
    file = CsvFile(tmp_path / "windows.csv", encoding="cp1252")
    covariates = {"x": Interval(0, 10), "größe": Categories("ä", "é", "€")}
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome, covariates)

    study = SparkStudy.encode(read_frame(file), domain)
    try:
        blocks = [pickle.loads(block) for _, block in study.blocks.collect()]  # noqa: S301
    finally:
        study.close()

    held = LocalStudy.encode(read_table(file), domain)
    np.testing.assert_array_equal(
        np.concatenate([block[0] for block in blocks], axis=-1), held.covariates
    )
    assert held.covariates[1:].any(axis=1).all()
    with pytest.raises(SchemaError, match="Spark reads text files in UTF-8 or cp1252"):
        read_frame(str(tmp_path / "wide.csv"))
