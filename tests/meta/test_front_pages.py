"""README, architecture and documentation stay short, plain, linked and true."""

import csv
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OUTSIDE = [ROOT / name for name in (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "r/README.md",
)]  # fmt: skip
MOST_WORDS_OF_README, MOST_LINES_OF_ARCHITECTURE, MOST_WORDS_OF_DOCS = 650, 150, 71_000
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def words_of(path):
    return len(path.read_text("utf-8").split())


def test_the_readme_has_at_most_650_words():
    assert words_of(ROOT / "README.md") <= MOST_WORDS_OF_README


def test_the_architecture_has_at_most_150_lines():
    lines = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    assert len(lines) <= MOST_LINES_OF_ARCHITECTURE


def test_the_documentation_has_no_more_words_than_it_may():
    sizes = {name_of(path): words_of(path) for path in PAGES}
    largest = sorted(sizes, key=sizes.get, reverse=True)[:5]
    assert sum(sizes.values()) <= MOST_WORDS_OF_DOCS, f"the largest: {largest}"


def anchors_of(path):
    """Return the anchors of a page's headings, as the site and GitHub make them."""
    found = set()
    for title in re.findall(r"^#+ (.*)$", _FENCED.sub("", path.read_text("utf-8")), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", title)
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain.lower())).strip("-"))
    return found


@pytest.mark.parametrize("path", [*OUTSIDE, *PAGES], ids=name_of)
def test_no_link_of_a_page_is_dead(path):
    text = re.sub(r"`[^`\n]*`", "", _FENCED.sub("", path.read_text("utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            known = {re.sub(r"[^\w-]", "", each) for each in anchors_of(found)}
            assert re.sub(r"[^\w-]", "", anchor) in known, target


def test_every_page_that_the_sources_name_is_there():
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "r" / "R").glob("*.R")]
    named = {
        page
        for path in sources
        for page in re.findall(r"docs/[\w/-]+\.(?:md|py|csv)", path.read_text("utf-8"))
    }
    assert {page for page in named if not (ROOT / page).is_file()} == set()


def test_no_picture_is_kept_in_two_formats():
    pictures = [path for path in DOCS.rglob("*") if path.suffix in {".svg", ".png", ".jpg"}]
    assert len({path.with_suffix("") for path in pictures}) == len(pictures)


def test_the_ten_first_pages_of_the_home_page_head_the_navigation():
    first = load(DOCS / "_site" / "navigation.py")._SECTIONS["Start here"]
    home = (DOCS / "index.md").read_text("utf-8")
    table = home.partition("## Ten pages")[2].partition("\n## ")[0]

    assert re.findall(r"^\d+\. \[[^\]]*\]\(([^)]*)\)", table, re.MULTILINE) == first
    assert len(first) == 10


def test_every_page_has_a_place_in_the_navigation():
    hook = load(DOCS / "_site" / "navigation.py")
    sections = hook.on_config({"docs_dir": str(DOCS)})["nav"]

    assert [title for section in sections for title in section] == ["Home", *hook._SECTIONS]


def test_the_output_on_the_front_pages_is_what_a_release_prints():
    maker = load(DOCS / "make_front.py")
    fresh = maker.words(maker.output())

    for page in maker.PAGES:
        assert maker.words(maker.block(page)) == fresh, "run python docs/make_front.py"


def test_the_python_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    from private_ate.cli.app import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["private-ate", "demo", "--out", "demo"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)

    assert len(code.strip().splitlines()) <= 5
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102  # our own page
    assert "guarantee" in capsys.readouterr().out


def test_the_sentence_below_the_figure_of_the_readme_is_true():
    with (DOCS / "results" / "referee-summary.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["epsilon"] == "1"]
    best = dict.fromkeys(("label", "sample"), 0)
    for row in rows:
        best[row["level"]] += row["verdict_of_default"] == "best"
    settings = {row["setting"] for row in rows}
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())

    assert (
        f"In {len(settings)} simulated settings at ε = 1, the default (square) has the smallest "
        f"mean error of all methods in {best['label']} at label level and in {best['sample']} at "
        "sample level"
    ) in text
