import re

import polars as pl
import pytest

from private_ate import (
    Binary,
    CalibratedOptions,
    Domain,
    Interval,
    Ledger,
    Release,
    Treatment,
    diagnose_ate,
    e_value,
    estimate_ate,
    risk_ratio,
    risk_ratio_interval,
)
from private_ate.cli.app import app
from private_ate.datasets.clinic import draw_clinic
from private_ate.release.public_facts import PublicFacts
from private_ate.report.phrasing import number_text

CANARY = 41.87654321


@pytest.fixture(scope="module")
def study():
    return draw_clinic(400)


@pytest.fixture(scope="module")
def releases(study):
    return {
        level: estimate_ate(study.frame, domain=study.domain, level=level, epsilon="0.7")
        for level in ("label", "sample")
    }


@pytest.fixture
def files(tmp_path, study):
    """Make the outcome of every fifth patient the canary."""
    marked = study.frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0)
        .then(CANARY)
        .otherwise(pl.col("pressure_drop"))
        .alias("pressure_drop")
    )
    marked.write_csv(tmp_path / "clinic.csv")
    study.domain.write(tmp_path / "clinic.toml")
    return tmp_path


def run(files, monkeypatch, *flags):
    """Run the command line in this process and return what it printed."""
    from typer.testing import CliRunner

    arguments = ["estimate", "clinic.csv", "--domain", "clinic.toml", *flags]
    monkeypatch.chdir(files)
    monkeypatch.setattr("sys.argv", ["private-ate", *arguments])
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_report_shows_the_release_and_nothing_of_the_records(files, monkeypatch, level):
    run(files, monkeypatch, "--level", level, "--epsilon", "0.7", "--report", "out.html")

    page = (files / "out.html").read_bytes()

    assert b"41.8765" not in page
    assert b"private-ate estimate clinic.csv --domain clinic.toml" in page
    assert b"exp(0.7)" in page
    assert b"0.7-differentially private" in page
    assert page.count(b"<h2>") == (5 if level == "label" else 4)  # no arms to compare in public
    assert (b"Means (standard deviations)" in page) == (level == "label")
    assert not re.search(rb"""(src|href)=|url\(|@import|http""", page.replace(b"http-equiv", b""))


def test_a_report_tells_who_asked_and_what_was_spent_before(files, monkeypatch):
    budget = str(files / "budget.db")
    Ledger.create(budget, "clinic", epsilon=5).close()
    asked = ("--level", "label", "--ledger", budget, "--analyst", "R. Fisher")
    run(files, monkeypatch, *asked, "--epsilon", "1.5")
    run(files, monkeypatch, *asked, "--epsilon", "1", "--report", "out.html")

    page = (files / "out.html").read_text("utf-8")

    assert "by R. Fisher" in page
    assert "ε = 1; ε = 1.5 was spent on these data before; ε = 2.5 of the budget of clinic" in page


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_report_of_a_release_without_a_guarantee_says_so(files, monkeypatch, level):
    flags = ("--treatment", "drug", "--outcome", "pressure_drop", "--bounds-from-data")
    names = ("--treated", "yes", "--control", "no", "--report", "out.html")
    study = Domain.read(files / "clinic.toml")
    Domain(study.treatment, "pressure_drop").write(files / "clinic.toml")

    result = run(files, monkeypatch, "--level", level, "--epsilon", "1", *flags, *names)

    assert result.exit_code == 0
    assert 'class="warning"' in (files / "out.html").read_text("utf-8")


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_curators_page_is_written_only_when_asked_for(files, monkeypatch, level):
    before = set(files.iterdir())
    run(files, monkeypatch, "--level", level, "--epsilon", "1", "--report", "out.html")
    unasked = set(files.iterdir()) - before
    run(files, monkeypatch, "--level", level, "--epsilon", "1", "--diagnostics", "mine.html")
    asked = set(files.iterdir()) - before - unasked

    assert [path.name for path in unasked] == ["out.html"]
    assert [path.name for path in asked] == ["mine.html"]
    assert "Not private, do not share" in (files / "mine.html").read_text("utf-8")
    assert "Not private" not in (files / "out.html").read_text("utf-8")


def test_the_curators_page_hides_an_empty_arm_from_the_terminal(files, monkeypatch):
    flags = ("--level", "sample", "--epsilon", "1", "--diagnostics", "mine.html", "--json")
    pl.read_csv(files / "clinic.csv").with_columns(drug=pl.lit("no")).write_csv(
        files / "clinic.csv"
    )

    result = run(files, monkeypatch, *flags)

    assert result.exit_code == 0
    assert "no unit is treated" not in result.output
    assert "no unit is treated" in (files / "mine.html").read_text("utf-8")


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_spent(files, monkeypatch):
    monkeypatch.setattr("private_ate.api.estimate_ate", lambda *_, **__: pytest.fail("spent"))

    with pytest.raises(ValueError, match="nothing was spent"):
        run(files, monkeypatch, "--level", "label", "--epsilon", "1", "--report", "no/out.html")


def test_a_password_in_the_command_stays_off_the_page(releases, study, monkeypatch):
    from private_ate.cli.output import public_facts

    secret = [
        "--ledger",
        "postgresql://me:hunter2@host/db",
        "--ledger=postgresql://me:hunter2@host",
    ]
    monkeypatch.setattr("sys.argv", ["private-ate", "estimate", *secret])

    facts = public_facts(releases["sample"], None, study.domain, None)

    assert facts.command == (
        "private-ate estimate --ledger postgresql://… --ledger=postgresql://…".replace(
            "postgresql://…", "'postgresql://…'", 1
        ).replace("--ledger=postgresql://…", "'--ledger=postgresql://…'")
    )


def test_a_curators_page_from_a_cluster_is_refused_before_anything_is_spent(files, monkeypatch):
    monkeypatch.setattr("private_ate.api.estimate_ate", lambda *_, **__: pytest.fail("spent"))
    flags = ("--level", "label", "--epsilon", "1", "--engine", "spark")

    with pytest.raises(ValueError, match="leave out --engine spark"):
        run(files, monkeypatch, *flags, "--diagnostics", "mine.html")


def test_texts_from_outside_are_escaped():
    domain = Domain(Treatment("a<b", 1, 0), ("c", Interval(0, 1)))
    frame = {"a<b": [0, 1, 1, 0], "c": [0.1, 0.2, 0.3, 0.4], "<script>x": [1.0, 2.0, 3.0, 5.0]}
    release = estimate_ate(
        pl.DataFrame(frame), domain=domain, covariates="all", level="label", epsilon=1
    )

    page = release.to_html(PublicFacts(command="<img src=x>", treatment="a<b", outcome="c"))

    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;x" in page


def test_a_binary_outcome_with_means_brings_ratios_and_an_e_value(study):
    domain = Domain(study.domain.treatment, ("diabetes", Binary()))
    release = estimate_ate(
        study.frame, domain=domain, level="label", epsilon=50, covariates=["age"],
        options=CalibratedOptions(means=True),
    )  # fmt: skip

    page = release.to_html()

    low, high = risk_ratio_interval(release)
    ratio = f"{risk_ratio(release):.3g}, 95 % interval from {low:.3g} to {high:.3g}"
    assert f">risk ratio</th><td>{ratio}</td>" in page
    assert f">E-value</th><td>{e_value(release).estimate:.3g}" in page
    assert ">needed to treat</th>" in page


def test_every_step_that_spent_has_a_bar(releases):
    for release in releases.values():
        page = release.to_html()
        for step in release.settings["budget"]:
            assert f'aria-label="{step}: ' in page
        assert page.count('% of ε"') == len(release.settings["budget"])


def test_a_page_of_a_release_read_back_is_the_same(releases):
    for release in releases.values():
        assert Release.from_json(release.to_json()).to_html() == release.to_html()


def test_a_seeded_release_warns_on_its_page(study):
    release = estimate_ate(study.frame, domain=study.domain, level="label", epsilon=1, seed=1)

    page = release.to_html()

    assert 'class="warning"' in page
    assert "satisfies no differential privacy guarantee" in page
    assert "computed WITHOUT a privacy guarantee" in page


def test_the_python_call_on_the_page_runs(files, monkeypatch, releases):
    monkeypatch.chdir(files)
    for release in releases.values():
        page = release.to_html()
        code = re.search(r"<code>(from private_ate.*?)</code>", page, re.DOTALL)[1]
        code = code.replace("&quot;", '"')
        names = {}
        exec(code.replace("DATA.csv", "clinic.csv").replace("DOMAIN", "clinic"), names)  # noqa: S102
        again = names["release"]

        assert (again.level, again.epsilon, again.method) == (
            release.level, release.epsilon, release.method,
        )  # fmt: skip
        assert set(again.settings) == set(release.settings)


def test_diagnostics_show_balance_weights_overlap_and_no_values_in_their_repr(study):
    diagnostics = diagnose_ate(study.frame, domain=study.domain)

    assert repr(diagnostics) == "Diagnostics(note='not private, do not share')"
    assert sum(diagnostics.overlap.treated) == diagnostics.treated
    assert sum(diagnostics.overlap.control) == diagnostics.control
    treated = study.frame.filter(pl.col("drug") == "yes")["pressure_drop"].mean()
    control = study.frame.filter(pl.col("drug") == "no")["pressure_drop"].mean()
    assert diagnostics.plain_difference == pytest.approx(treated - control, abs=1e-5)
    assert all(list(values) == sorted(values) for values in diagnostics.weights.values())


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (8.18735, 0.33, "8.19"),
        (7.96252, 1.05, "8.0"),
        (-1794.34, 633.0, "−1,790"),
        (-7820.4, 3440.0, "−7,800"),
        (0.0123456, 0.004, "0.0123"),
        (-0.0004, 0.3, "0.00"),
        (1.0, 0.0, "1"),
        (-3.14159, 0.0, "−3.142"),
        (3e15, 1e12, "3e+15"),
        (1e-12, 1e-13, "1e−12"),
    ],
)
def test_numbers_have_the_digits_their_standard_error_supports(value, error, text):
    assert number_text(value, error) == text
