"""Without the extra, files of Stata, SPSS and R name what is missing."""

import sys

import pytest

from private_ate import ArgumentError
from private_ate.data.files import open_schema, open_table, read_schema


@pytest.mark.parametrize(
    ("ending", "package"),
    [(".dta", "pyreadstat"), (".sav", "pyreadstat"), (".rds", "rdata")],
)
@pytest.mark.parametrize("door", [read_schema, open_schema, open_table])
def test_a_missing_reader_is_named(tmp_path, monkeypatch, ending, package, door):
    path = tmp_path / f"study{ending}"
    path.write_bytes(b"canary-4711")
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ArgumentError, match=r"private-ate\[formats\]") as caught:
        door(path)

    assert package in str(caught.value)
    assert "canary" not in str(caught.value)
