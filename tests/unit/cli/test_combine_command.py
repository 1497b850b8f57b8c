"""`private-ate combine` from files to text, JSON and a page."""

import json

import pytest
from typer.testing import CliRunner

from private_ate import Combined, combine
from private_ate.cli import main
from private_ate.cli.app import app
from sites import made_up_site

RUNNER = CliRunner()


@pytest.fixture
def files(tmp_path):
    for name, mean in (("north", 3.0), ("south", 5.0), ("east", 1.0)):
        (tmp_path / f"{name}.json").write_text(made_up_site(mean).to_json(), "utf-8")
    return [str(tmp_path / f"{name}.json") for name in ("north", "south", "east")]


def run(*words):
    result = RUNNER.invoke(app, ["combine", *words])
    assert result.exit_code == 0, result.output
    return result.output


def refuse(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["private-ate", "combine", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_the_text_shows_the_effect_its_sites_and_the_promise(files):
    text = run(*files)

    assert "3 sites combined by private-ate" in text
    assert "prediction" in text
    assert "pure 1-DP, label level, for people who are in one site" in text
    for name in ("north", "south", "east"):
        assert f"  {name}  " in text
    assert max(len(line) for line in text.splitlines()) <= 88


def test_json_is_what_the_library_answers(files):
    text = run(*files, "--model", "fixed", "--confidence", "0.9", "--json")
    sites = {"north": 3.0, "south": 5.0, "east": 1.0}

    asked = {name: made_up_site(mean) for name, mean in sites.items()}
    assert Combined.from_json(text) == combine(asked, "fixed", confidence=0.9)


def test_a_page_is_written_when_asked_for(files, tmp_path):
    run(*files, "--report", str(tmp_path / "sites.html"))

    page = (tmp_path / "sites.html").read_text("utf-8")
    assert "Effect of drug on pressure: 3 sites combined" in page


def test_files_of_one_name_are_told_apart_by_their_folders(files, tmp_path):
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / "north.json").write_text(made_up_site(9.0).to_json(), "utf-8")

    plain = json.loads(run(files[0], str(folder / "north.json"), "--json"))

    assert [site["name"] for site in plain["sites"]] == [files[0], str(folder / "north.json")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "error: there is no file"),
        (b"\xff\xfe", "cannot be read"),
        (b"{}", "has exactly the fields"),
        (b"", "not a release in JSON"),
    ],
)
def test_a_file_that_is_no_release_is_refused_by_its_name(
    files, tmp_path, monkeypatch, capsys, content, reason
):
    path = tmp_path / "odd.json"
    if content is not None:
        path.write_bytes(content)

    error = refuse(monkeypatch, capsys, *files, str(path))

    assert "odd.json" in error
    assert reason in error


@pytest.mark.parametrize("edit", ['"ate": NaN', '"ate": 1e999', '"ate": Infinity', '"ate": "3"'])
def test_numbers_that_are_none_are_refused(files, tmp_path, monkeypatch, capsys, edit):
    text = made_up_site(7.0).to_json()
    (tmp_path / "odd.json").write_text(text.replace('"ate": 7.0', edit), "utf-8")

    assert "odd.json" in refuse(monkeypatch, capsys, *files, str(tmp_path / "odd.json"))


@pytest.mark.parametrize(
    "edit",
    ['"epsilon": "1"', '"epsilon": 1e-13', '"epsilon": 0', '"epsilon": -1', '"epsilon": true',
     '"epsilon": 0.30000000000000004', '"epsilon": 1e7', '"epsilon": 0.5'],
)  # fmt: skip
def test_an_epsilon_that_is_none_or_another_is_refused(files, tmp_path, monkeypatch, capsys, edit):
    text = made_up_site(7.0).to_json()
    assert '"epsilon": 1.0,' in text
    (tmp_path / "odd.json").write_text(text.replace('"epsilon": 1.0,', f"{edit},", 1), "utf-8")

    assert "odd" in refuse(monkeypatch, capsys, *files, str(tmp_path / "odd.json"))


def test_a_file_named_twice_is_refused(files, monkeypatch, capsys):
    assert "named twice" in refuse(monkeypatch, capsys, files[0], files[0])


def test_a_page_without_a_folder_is_refused(files, tmp_path, monkeypatch, capsys):
    error = refuse(monkeypatch, capsys, *files, "--report", str(tmp_path / "none" / "a.html"))

    assert "cannot be written" in error
