"""What stands around the code stays true: the paper, the versions, the records, the workflows."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
RECORDS = sorted((ROOT / "docs" / "adr").glob("0*.md"))
TITLE = "PrivATE: Differentially Private Average Treatment Effect Estimation for Observational Data"
DOI = "10.14722/ndss.2026.241350"
AUTHORS = [
    "Quan Yuan", "Xiaochen Li", "Linkang Du", "Min Chen", "Mingyang Sun", "Yunjun Gao",
    "Shibo He", "Jiming Chen", "Zhikun Zhang",
]  # fmt: skip


def read(name):
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_front_page_names_the_paper_in_full(page):
    text = re.sub(r"[\s>]+", " ", read(page))

    for words in (
        TITLE,
        *AUTHORS,
        "Network and Distributed System Security Symposium",
        "2026",
        DOI,
    ):
        assert words in text, words


def test_the_citation_names_the_software_and_the_paper():
    text = read("CITATION.cff")
    names = re.findall(r"given-names: ([\w ]+), family-names: (\w+)", text)

    assert [" ".join(name) for name in names] == AUTHORS
    assert TITLE in text
    assert f"doi: {DOI}\n" in text


def test_package_citation_and_changelog_speak_of_one_version():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    released, dated = re.search(
        r"^## (\d\S*) - (\S+)$", read("CHANGELOG.md"), re.MULTILINE
    ).groups()
    unreleased = "\n## Unreleased\n" in read("CHANGELOG.md")

    # Between releases the package is a development version of the next one.
    assert version.endswith(".dev0") if unreleased else version == released
    assert f'version: {released}\ndate-released: "{dated}"\n' in read("CITATION.cff")


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_decision_record_has_the_common_form(record):
    text = record.read_text("utf-8")

    assert re.match(rf"# {record.stem[:4]} \S.*\n\nStatus: (\w+)", text)
    status = re.search(r"^Status: (.*)$", text, re.MULTILINE)[1]
    assert re.fullmatch(r"proposed|accepted|superseded by \d{4}", status)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]


def test_workflows_and_the_run_of_all_checks_call_the_same_suites():
    suites = re.search(r"^SUITES := ((?:.*\\\n)*.*)$", read("Makefile"), re.MULTILINE)[1]
    named = {*suites.replace("\\", "").split(), "test"}

    assert set(re.findall(r"\btest(?:-[a-z]+)?\b", read(".ci/run"))) == named
    assert set(re.findall(r"^ +- (test\S*)$", read(".github/workflows/ci.yml"), re.MULTILINE)) == (
        named
    )
    nightly = re.search(r"target: \[(.*)\]", read(".github/workflows/nightly.yml"))[1].split(", ")
    assert nightly == ["audit", "audit-versions", "mutants"]
    assert all(f"\n{target}:" in read("Makefile") for target in nightly)


@pytest.mark.parametrize(
    "page", ["README.md", "r/README.md", *sorted(f"docs/{one}" for one in PAGES)]
)
def test_no_page_installs_a_package_that_is_not_on_the_index(page):
    offered = re.findall(r"pip install[^`\n]*private-ate[^`\n]*", read(page))

    # An extra of a package that is there already, which the page on installing explains.
    allowed = {"pip install 'private-ate[plots]'"} if page.endswith("install.md") else set()
    assert {text for text in offered if "./private-ate" not in text} <= allowed
