"""Saved releases: shown again, printed from a ledger, and told from edited ones."""

import json
import re
import sys
from dataclasses import replace
from html import unescape

import pytest
from typer.testing import CliRunner

from private_ate import ArgumentError, Ledger, LedgerError, Release, estimate_ate
from private_ate.cli.app import app
from private_ate.datasets.clinic import draw_clinic
from private_ate.errors import PrivateAteError
from private_ate.ledger.chain import find_stored
from private_ate.settings import Facts
from smoking import smoking_release

CSV = "t,y,a\n" + "".join(f"{i % 2},{i % 7 / 7},{i % 5 / 5}\n" for i in range(40))
LONG = "a-name-of-a-data-set-that-is-as-long-as-names-of-data-sets-in-registries-become-over-time"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.exception
    return result.stdout


def asked(folder, *more):
    return [
        "estimate", folder / "data.csv", "--treatment", "t", "--outcome", "y",
        "--outcome-bounds", 0, 1, "--level", "label", "--epsilon", "0.5", "--covariates", "a",
        "--bounds", "a=0:1", "--confidence", "none", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data, a ledger and a release that was charged to it and saved."""
    made = tmp_path_factory.mktemp("saved")
    (made / "data.csv").write_text(CSV)
    done("ledger", "create", made / "budget.db", "--dataset", LONG, "--epsilon", "1.123456789")
    done(*asked(made, "--ledger", made / "budget.db", "--request-id", "first", "--out",
                made / "r.json"))  # fmt: skip
    return made


@pytest.fixture
def saved(folder):
    return folder / "r.json"


def test_a_saved_release_is_shown_again_as_it_was(saved):
    again = done("report", saved)
    release = Release.from_json(saved.read_text())
    assert "effect (ATE)" in again
    assert release.guarantee in again


def test_a_saved_release_becomes_a_page_without_its_data(saved, tmp_path):
    done("report", saved, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page == Release.from_json(saved.read_text()).to_html()
    assert "Effect of t on y" in page


def test_the_declared_domain_can_be_added_to_the_page(saved, tmp_path):
    domain = '[treatment]\ncolumn = "t"\n[outcome]\ncolumn = "y"\nlow = 0\nhigh = 1\n'
    (tmp_path / "d.toml").write_text(domain)
    done("report", saved, "--out", tmp_path / "page.html", "--domain", tmp_path / "d.toml")
    assert "The declared domain" in (tmp_path / "page.html").read_text("utf-8")
    (tmp_path / "d.toml").write_text(domain.replace('"y"', '"z"'))
    refused = run("report", saved, "--out", tmp_path / "p.html", "--domain", tmp_path / "d.toml")
    assert isinstance(refused.exception, ArgumentError)


@pytest.mark.parametrize("name", ["page.odt", "page", "r.json"])
def test_a_file_of_another_kind_or_the_release_itself_is_not_written(saved, tmp_path, name):
    copy = tmp_path / "r.json"
    copy.write_text(saved.read_text())
    refused = run("report", copy, "--out", tmp_path / name)
    assert isinstance(refused.exception, ArgumentError)
    assert copy.read_text() == saved.read_text()


def test_what_is_no_release_is_named_by_its_file(tmp_path):
    (tmp_path / "odd.json").write_text("{}")
    refused = run("report", tmp_path / "odd.json")
    assert "odd.json" in str(refused.exception)


def test_a_release_of_several_arms_is_shown_again(tmp_path):
    (tmp_path / "k.json").write_text(smoking_release().to_json())
    assert "reference" in done("report", tmp_path / "k.json", "--contrasts", "reference")


def test_the_ledger_prints_a_stored_release(folder, saved):
    shown = ["ledger", "show", folder / "budget.db", "--release", "first"]
    assert done(*shown, "--json").strip() == saved.read_text().strip()
    assert "effect (ATE)" in done(*shown)
    assert isinstance(run(*shown[:-1], "second").exception, LedgerError)


def history(folder):
    ledger = Ledger.open(folder / "budget.db")
    entries = ledger.history()
    ledger.close()
    return entries


def test_a_request_without_a_release_has_none_to_print(folder):
    charged = [entry for entry in history(folder) if entry.kind != "release"]
    with pytest.raises(LedgerError, match="was charged but has no release"):
        find_stored(charged, "first")


def test_a_stored_release_that_was_altered_is_not_printed(folder):
    *before, last = history(folder)
    assert find_stored([*before, last], "first") == last
    with pytest.raises(LedgerError, match="it was altered"):
        find_stored([*before, replace(last, body=last.body.replace("0.", "1."))], "first")


def test_two_data_sets_with_one_request_id_are_told_apart(folder, tmp_path):
    path = tmp_path / "budget.db"
    for name in ("one", "two"):
        done("ledger", "create", path, "--dataset", name, "--epsilon", "1")
        done(*asked(folder, "--ledger", path, "--dataset", name, "--request-id", "same"))
    shown = ["ledger", "show", path, "--release", "same", "--json"]
    assert run(*shown).exception.parameter == "dataset"
    assert json.loads(done(*shown, "--dataset", "two"))["dataset"] == "two"


def test_a_saved_release_is_what_the_ledger_stored(folder, saved, tmp_path):
    told = done("ledger", "verify", folder / "budget.db", "--release", saved)
    assert "The file is the release that the ledger stored" in told
    shuffled = dict(reversed(json.loads(saved.read_text()).items()))
    (tmp_path / "r.json").write_text(json.dumps(shuffled, indent=7))
    row = json.loads(
        done("ledger", "verify", folder / "budget.db", "--release", tmp_path / "r.json", "--json")
    )
    assert row[0]["release"] == {"dataset": LONG, "request": "first"}


def edited(text, name, value):
    return json.dumps(json.loads(text) | {name: value})


EDITS = {
    "ate": lambda text: edited(text, "ate", 99.9),
    "n": lambda text: edited(text, "n", 4000),
    "guarantee": lambda text: edited(text, "guarantee", "pure 0.1-DP"),
    "settings": lambda text: text.replace('"neighbors"', '"neighbours"').replace(
        '"confidence": 0.95', '"confidence": 0.9'
    ),
    "effects": lambda text: text.replace('"subgroup": null', '"subgroup": "women"'),
}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_release_is_found(folder, saved, tmp_path, field):
    text = EDITS[field](saved.read_text())
    assert json.loads(text) != json.loads(saved.read_text())
    (tmp_path / "r.json").write_text(text)
    refused = run("ledger", "verify", folder / "budget.db", "--release", tmp_path / "r.json")
    assert isinstance(refused.exception, LedgerError)
    assert str(refused.exception).endswith(f": {field} differs")


@pytest.mark.parametrize("extra", ['"ate": 99.9,', '"more": 1,'])
def test_a_field_that_is_there_twice_or_too_much_is_found(folder, saved, tmp_path, extra):
    (tmp_path / "r.json").write_text(saved.read_text().replace("{", "{" + extra, 1))
    refused = run("ledger", "verify", folder / "budget.db", "--release", tmp_path / "r.json")
    assert isinstance(refused.exception, PrivateAteError)


def test_a_release_of_no_ledger_or_of_another_is_refused(folder, saved, tmp_path):
    plain = json.loads(saved.read_text())
    del plain["settings"]["ledger"]
    (tmp_path / "r.json").write_text(json.dumps(plain))
    other = tmp_path / "other.db"
    done("ledger", "create", other, "--dataset", "else", "--epsilon", "1")
    for ledger, release in ((folder / "budget.db", tmp_path / "r.json"), (other, saved)):
        refused = run("ledger", "verify", ledger, "--release", release)
        assert isinstance(refused.exception, LedgerError)


@pytest.mark.parametrize("note", [None, 3, {}, {"dataset": "a", "request": 1, "head": "b"}])
def test_a_note_of_another_shape_is_no_note(note):
    assert Facts.of({"ledger": note}).ledger is None


def test_the_ledger_fits_eighty_columns_and_never_cuts(folder):
    path = folder / "budget.db"
    hashes = [row["hash"] for row in json.loads(done("ledger", "history", path, "--json"))]
    history, verified = done("ledger", "history", path), done("ledger", "verify", path)
    shown = done("ledger", "show", path)
    for digest in hashes:
        assert digest in history
    assert hashes[-1] in verified
    for text in (history.replace(LONG, "x"), verified, shown):
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= 80
    assert "1.123456789" in shown
    folded = "".join(re.findall(r"^│ ([\w-]+) *│", shown.partition("Bound")[0], re.MULTILINE))
    assert LONG in folded


@pytest.mark.parametrize(
    ("first", "second"),
    [("--report", "--diagnostics"), ("--out", "--report"), ("--report", "--ledger")],
)
def test_no_two_outputs_share_a_file(folder, tmp_path, first, second):
    there = tmp_path / "page.html"
    refused = run(*asked(folder, first, there, second, tmp_path / "." / "page.html"))
    assert "name the same file" in str(refused.exception)
    assert not there.exists()


def test_the_data_are_not_overwritten_through_a_link(folder, tmp_path):
    link = tmp_path / "page.html"
    link.symlink_to(folder / "data.csv")
    refused = run(*asked(folder, "--report", link))
    assert "the data" in str(refused.exception)
    assert (folder / "data.csv").read_text() == CSV


def subgroups_release():
    study = draw_clinic(600, seed=3)
    return estimate_ate(
        study.frame, domain=study.domain, level="label", epsilon=2, by=["age<60"], seed=1
    )


FORMS = {
    "two arms": lambda: estimate_ate(
        draw_clinic(400, seed=3).frame,
        domain=draw_clinic(400, seed=3).domain,
        level="label",
        epsilon=2,
        seed=1,
    ),
    "several arms": smoking_release,
    "subgroups": subgroups_release,
}


@pytest.mark.parametrize("made", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("ending", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_a_saved_release_is_drawn_as_a_figure_for_a_slide(made, ending, begins, tmp_path):
    release = made()
    (tmp_path / "r.json").write_text(release.to_json())

    done("report", tmp_path / "r.json", "--out", tmp_path / f"effect{ending}")

    assert (tmp_path / f"effect{ending}").read_bytes().startswith(begins)


def test_a_figure_says_what_was_compared_and_what_is_promised(tmp_path):
    (tmp_path / "r.json").write_text(subgroups_release().to_json())

    done("report", tmp_path / "r.json", "--out", tmp_path / "effect.svg")

    drawn = unescape((tmp_path / "effect.svg").read_text())
    comments = re.findall(r"<!-- (.*?) -->", drawn, re.DOTALL)
    assert "Effect of drug: yes against no, on pressure_drop, in subgroups by age<60" in comments
    assert "age≥60" in comments
    assert any("WITHOUT a privacy guarantee" in text for text in comments)  # it was seeded


def test_a_love_plot_is_drawn_from_the_release_alone_at_label_level(tmp_path):
    study = draw_clinic(400, seed=3)
    for level in ("label", "sample"):
        release = estimate_ate(study.frame, domain=study.domain, level=level, epsilon=2)
        (tmp_path / f"{level}.json").write_text(release.to_json())

    done("report", tmp_path / "label.json", "--out", tmp_path / "love.svg", "--figure", "balance")
    refused = run(
        "report", tmp_path / "sample.json", "--out", tmp_path / "no.svg", "--figure", "balance"
    )

    assert "pressure_before" in (tmp_path / "love.svg").read_text()
    assert "no balance of covariates" in str(refused.exception)
    assert not (tmp_path / "no.svg").exists()


def test_a_figure_without_matplotlib_says_what_to_install(saved, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    refused = run("report", saved, "--out", tmp_path / "effect.png")

    assert "pip install 'private-ate[plots]'" in str(refused.exception)


def test_a_column_with_dollar_signs_is_no_formula(tmp_path):
    release = smoking_release()
    odd = replace(release, treatment=replace(release.treatment, column="$\\cost{$"))
    (tmp_path / "r.json").write_text(odd.to_json())

    done("report", tmp_path / "r.json", "--out", tmp_path / "effect.svg")

    assert "$\\cost{$" in (tmp_path / "effect.svg").read_text().replace(r"\$", "$")
