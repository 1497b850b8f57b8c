from dataclasses import replace

import polars as pl
import pytest

from private_ate import (
    Binary,
    CalibratedOptions,
    Categories,
    Domain,
    Interval,
    Outcome,
    Treatment,
    check_data,
    combine,
    describe_arms,
    diagnose_ate,
    estimate_ate,
)
from private_ate.datasets.birth_weight import birth_weight
from private_ate.datasets.clinic import draw_clinic
from private_ate.diagnostics.overlap import describe_overlap
from private_ate.report.html import PublicFacts, releases_page
from several_outcomes import clinic_domain, clinic_table
from sites import effect_row, halves, made_up_site
from smoking import ARM_OVERLAP, WEIGHT, smoking_release

WIDTHS = (360, 390, 1280)
PAGES = ("label", "sample", "means", "seeded", "both", "curator", "several", "curator of several",
         "long names", "subgroups", "combined", "combined-table",
         "arms, subgroups and outcomes", "check")  # fmt: skip
# Names of rows whose words are broken over two lines; underscores end words.
BROKEN = """[...document.querySelectorAll("tbody th")].filter((head) =>
  [...head.childNodes].some((part) => part.nodeType === Node.TEXT_NODE && (() => {
    const range = document.createRange();
    return [...part.data.matchAll(/\\S+/g)].some((word) => {
      range.setStart(part, word.index);
      range.setEnd(part, word.index + word[0].length);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
    });
  })())).map((head) => head.textContent)"""


def many_effects(shift):
    """Return a release of 24 effects: three arms' contrasts, subgroups and outcomes."""
    half = halves(1.0, 0.5, 0.9, 0.95)
    rows = [
        effect_row(3.0 + shift + place, *half, arm=arm, subgroup=group, outcome=outcome)
        for place, outcome in enumerate(("pressure", "days in hospital after the first visit"))
        for arm in ("yes", "a dose that is twice as high")
        for group in (None, "women", "men", "age<65", "age>=65", "smokers who have never stopped")
    ]
    return made_up_site(0, effects=tuple(rows))


LONG = replace(
    WEIGHT,
    treatment=Treatment(
        "t", arms=[f"{place} {'cigarettes a day or what is like them ' * 3}" for place in range(4)]
    ),
)


def subgroups_of_three_arms():
    """Return one release of three arms in four subgroups, for two outcomes."""
    study = draw_clinic(900)
    left = ("smoker", "weight")
    others = {name: kind for name, kind in study.domain.covariates.items() if name not in left}
    arms = Treatment("smoker", arms=("never", "former", "current"))
    outcomes = [study.domain.outcome, Outcome("weight", Interval(40, 160))]
    release = estimate_ate(
        study.frame, domain=Domain(arms, outcomes, others), level="label", epsilon=2,
        by=["age<60", "pressure_before<150"], overall=True, leave_out_undeclared=True,
    )  # fmt: skip
    assert len(release.effects) == 2 * (3 + 2 * 8)  # all units, margins and cells
    return release


def birth_weight_diagnostics():
    babies = birth_weight(500)
    release = estimate_ate(babies.frame, domain=babies.domain, level="label", epsilon=2)
    return diagnose_ate(babies.frame, domain=babies.domain, release=release)


def checked():
    """Return the check of a study whose columns have names as registries give them."""
    rows = range(300)
    frame = pl.DataFrame(
        {
            "received_treatment_in_hospital": [i % 2 if i % 9 else 3 for i in rows],
            "systolic_blood_pressure_after": [90 + i % 80 if i % 13 else None for i in rows],
            "age_at_admission_in_years": [20 + i % 90 for i in rows],
            "comorbidity_index_charlson": [["none", "mild", "severe"][i % 3] for i in rows],
        }
    )
    domain = Domain(
        "received_treatment_in_hospital",
        ("systolic_blood_pressure_after", Interval(90, 140)),
        {
            "age_at_admission_in_years": Interval(30, 80),
            "comorbidity_index_charlson": Categories("none", "mild"),
        },
    )
    return check_data(frame, domain=domain, level="label")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    study = draw_clinic(600)
    overlap = describe_overlap(study.frame, domain=study.domain)
    label, sample = (
        estimate_ate(study.frame, domain=study.domain, level=level, epsilon=1)
        for level in ("label", "sample")
    )
    facts = PublicFacts(
        "private-ate estimate a-file-with-a-long-name-that-has-to-wrap-somewhere-or-be-cut.csv",
        study.domain.to_toml(), "drug", "pressure_drop", overlap,
        describe_arms(label, study.frame, domain=study.domain), "R. A. Fisher", 2.5,
    )  # fmt: skip
    wide = Domain(study.domain.treatment, ("pressure_drop", Interval(-4e9, 6e9)))
    means = estimate_ate(
        study.frame, domain=wide, covariates="all", level="label", epsilon=8, seed=1,
        options=CalibratedOptions(means=True),
    )  # fmt: skip
    binary = Domain(study.domain.treatment, ("diabetes", Binary()))
    risks = estimate_ate(
        study.frame, domain=binary, covariates=["age", "weight"], level="label", epsilon=2,
        options=CalibratedOptions(means=True),
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("pages")
    for name, text in {
        "label": label.to_html(facts),
        "sample": sample.to_html(),
        "means": risks.to_html(
            PublicFacts(table=describe_arms(
                risks, study.frame, domain=binary, covariates=["age", "weight"]
            ))
        ),
        "seeded": means.to_html(facts),
        "both": releases_page(
            [(label, facts), (sample, PublicFacts())], title="Two", introduction="x"
        ),
        "curator": diagnose_ate(study.frame, domain=study.domain, release=label).to_html(label),
        "several": smoking_release().to_html(
            PublicFacts(domain=WEIGHT.to_toml(), overlap=ARM_OVERLAP), monotone=True
        ),
        "long names": smoking_release(domain=LONG).to_html(
            PublicFacts(overlap=replace(ARM_OVERLAP, labels=LONG.treatment.labels))
        ),
        "subgroups": subgroups_of_three_arms().to_html(),
        "curator of several": birth_weight_diagnostics().to_html(smoking_release()),
        "combined": combine(
            {"a hospital with a name that is longer than a phone is wide": made_up_site(3.0),
             "b": made_up_site(41.0)}
        ).to_html(),
        "arms, subgroups and outcomes": estimate_ate(
            clinic_table(600, 3), domain=clinic_domain(3), level="label", epsilon=2,
            by=["sex", "site"],
        ).to_html(),
        "check": checked().to_html(),
        "combined-table": combine([many_effects(0.2), many_effects(-0.3)]).to_html(),
    }.items():  # fmt: skip
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_quietly_alone_and_readably(browser, inspection, folder, name, width):
    url = (folder / f"{name}.html").as_uri()

    visit = browser.open(url, width)

    assert visit.problems == []
    assert visit.requests == [url]
    assert browser.evaluate(inspection) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["check", "label"])
def test_names_of_columns_are_not_broken_inside_a_word(browser, folder, name, width):
    browser.open((folder / f"{name}.html").as_uri(), width)

    assert browser.evaluate(BROKEN) == []


def test_the_inspection_finds_planted_faults(browser, inspection, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        '<!DOCTYPE html><html><body><main><h1>a</h1><h3>b</h3><p style="color:#bbb">pale</p>'
        '<p style="white-space:nowrap;width:99px">' + "long " * 200 + "</p><img src='data:,'>"
        "<svg role=img></svg><table><tr><td>1</td></tr></table></main>"
        "<script>console.error('oops'); fetch('http://127.0.0.1:9/x').catch(() => 0)</script>",
        encoding="utf-8",
    )

    visit = browser.open(page.as_uri(), 360)
    found = "\n".join(browser.evaluate(inspection))

    assert any("oops" in problem for problem in visit.problems)
    assert "http://127.0.0.1:9/x" in visit.requests
    for fault in (
        "no language", "no title", "sideways", "skips a level", "contrast 1.9", "leaves the screen",
        "alternative text", "no description", "no header",
    ):  # fmt: skip
        assert fault in found, fault


@pytest.mark.parametrize("name", ["label", "curator", "combined"])
def test_a_page_prints_on_a_few_sheets_without_losing_text(browser, inspection, folder, name):
    browser.use_paper(paper=True)

    browser.open((folder / f"{name}.html").as_uri(), 718)  # A4 between usual margins
    found = browser.evaluate(inspection)
    pdf = browser.print_pages()
    browser.use_paper(paper=False)

    assert found == []
    assert pdf.startswith(b"%PDF")
    assert 1 <= pdf.count(b"/Type /Page\n") <= 6


@pytest.mark.parametrize("name", ["label", "sample", "means"])
def test_a_report_of_two_arms_prints_on_two_pages(browser, folder, name):
    browser.use_paper(paper=True)

    browser.open((folder / f"{name}.html").as_uri(), 718)
    pdf = browser.print_pages()
    browser.use_paper(paper=False)

    assert pdf.count(b"/Type /Page\n") == 2


def test_an_unfolded_report_would_not_fit_on_two_pages(browser, folder):
    browser.use_paper(paper=True)

    browser.open((folder / "label.html").as_uri(), 718)
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    pdf = browser.print_pages()
    browser.use_paper(paper=False)

    assert pdf.count(b"/Type /Page\n") > 2


def test_the_curators_page_stays_watermarked_while_it_scrolls(browser, folder):
    browser.open((folder / "curator.html").as_uri(), 360)

    top = browser.evaluate(
        "window.scrollTo(0, 1e6); const box = document.querySelector('.banner')"
        ".getBoundingClientRect(); [Math.round(box.top), scrollY > 0]"
    )

    assert top == [0, True]
