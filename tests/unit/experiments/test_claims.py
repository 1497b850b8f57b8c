"""Verdicts follow the numbers: turn the numbers round and the verdict turns."""

import math
from dataclasses import replace

import polars as pl
import pytest

from private_ate.experiments import claims, findings
from private_ate.experiments.catalogue import EXPERIMENTS, allocation
from private_ate.experiments.claims import is_similar
from private_ate.experiments.results import Summary, SummaryRow, geometric_mean
from private_ate.experiments.tables import number

SETS = ("ihdp", "lalonde", "acic", "synth")
EPSILONS = ("0.5", "1", "3", "4")
BASE = SummaryRow(
    dataset="synth", method="published-label", level="label", epsilon="1", neighbors=5,
    parameters="", n=100, failed=0, relative_error_mean=0.1, relative_error_sd=0.05,
    error_against_truth_mean=0.2, error_against_truth_sd=0.1, matching_against_truth=0.1,
)  # fmt: skip


def row(error, **values):
    return replace(BASE, relative_error_mean=error, **values)


def summary_of(error, **axes):
    """Build a summary from a function of the mapping of a row's columns."""
    from itertools import product

    rows = []
    for choice in product(*axes.values()):
        columns = dict(zip(axes, choice, strict=True))
        rows.append(row(error(columns), **columns))
    return Summary(tuple(rows))


def end_to_end(scales):
    return summary_of(
        lambda at: scales[at["method"]] / float(at["epsilon"]),
        dataset=SETS, method=tuple(scales), epsilon=EPSILONS,
    )  # fmt: skip


AS_THE_PAPER_SAYS = {
    "published-label": 0.1, "published-sample": 0.11, "aim": 3.2, "privsyn": 4.0, "ipw": 9.0,
    "smooth-matching": 3.1, "doubly-robust": 3.05,
}  # fmt: skip


def verdicts(found):
    return {claim.words: claim.verdict for claim in found}


def test_a_summary_as_the_paper_describes_it_is_reproduced():
    found = verdicts(claims.claims_of_end_to_end(end_to_end(AS_THE_PAPER_SAYS)))

    beyond = {
        "PrivATE performs similarly for N = 1, 3, 5 and 7.": "not measured",
        # Here PrivSyn's error falls with ε like the others.
        "PrivSyn stays around 1 on ACIC whatever ε.": "not reproduced",
    }
    assert found == dict.fromkeys(found, "reproduced") | beyond


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"published-label": 5.0}, "Label level performs best on all data sets."),
        ({"published-sample": 9.5}, "Sample level comes second: it outperforms the baselines"),
        ({"published-sample": 1.0}, "At ε = 4 the two levels perform similarly."),
        ({"published-label": 0.9}, "Lalonde at ε = 3"),
        ({"published-sample": 0.6}, "The error of PrivATE is less than 1 in all cases (sample"),
        ({"privsyn": 0.5}, "PrivSyn at ε = 1 exceeds 1"),
        ({"ipw": 0.2}, "IPW-PP performs poorest"),
        ({"smooth-matching": 0.2, "doubly-robust": 0.2}, "For ε ≤ 1.5"),
        ({"aim": 5.0}, "AIM is worse than PrivATE but better than PrivSyn."),
    ],
)
def test_other_numbers_are_not_reproduced(change, words):
    found = verdicts(claims.claims_of_end_to_end(end_to_end(AS_THE_PAPER_SAYS | change)))

    assert [verdict for said, verdict in found.items() if said.startswith(words)] == [
        "not reproduced"
    ]


def test_an_error_that_rises_with_the_budget_is_named():
    rising = summary_of(
        lambda at: float(at["epsilon"]),
        dataset=("synth",), method=("published-sample",), epsilon=EPSILONS,
    )  # fmt: skip

    claim = claims.claims_of_end_to_end(rising)[0]

    assert claim.verdict == "not reproduced"
    assert "PrivATE (sample) on Synth" in claim.measured


def test_what_was_not_run_is_not_judged():
    found = claims.claims_of_end_to_end(end_to_end({"published-label": 0.1}))

    assert {claim.words: claim.verdict for claim in found}[
        "IPW-PP performs poorest on most data sets."
    ] == "not measured"


def test_our_methods_are_compared_with_the_published_ones_where_they_ran():
    scales = {"published-label": 0.4, "calibrated-track": 0.2}

    claim = claims.claims_of_end_to_end(end_to_end(scales))[-1]

    assert claim.verdict == "measured"
    assert claim.words == "How does ours track (label) compare with PrivATE (label)?"
    # The geometric mean of 1/ε over 0.5, 1, 3 and 4 is 6 to the power of −1/4, which is 0.639.
    assert "Synth: ours track (label) 0.13, PrivATE (label) 0.26" in claim.measured


def test_neighbours_matter_when_errors_differ_a_lot():
    def error(at):
        return 0.3 * (5.0 if at["neighbors"] == 1 else 1.0) / float(at["epsilon"])

    summary = summary_of(
        error, dataset=("synth",), method=("published-label", "published-sample"),
        epsilon=EPSILONS, neighbors=(1, 5),
    )  # fmt: skip
    found = claims.claims_of_end_to_end(summary)

    assert found[-1].verdict == "not reproduced"
    assert "5.00" in found[-1].measured


LIMITS = ("", "k=1", "k=10", "k=50")


def limits(error):
    return summary_of(error, dataset=SETS, parameters=LIMITS, epsilon=EPSILONS)


def test_limits_as_the_paper_describes_them_are_reproduced():
    def error(at):
        limit = {"": 0, "k=1": 1, "k=10": 10, "k=50": 50}[at["parameters"]]
        if limit == 0:
            return 0.3 / float(at["epsilon"])
        return 0.3 / limit + 0.02 * limit / float(at["epsilon"]) ** 2

    found = verdicts(claims.claims_of_limit_label(limits(error)))

    assert set(found.values()) == {"reproduced"}


def test_a_limit_that_always_wins_and_an_adaptive_one_that_fails_are_not_reproduced():
    def error(at):
        return {"": 5.0, "k=1": 0.1, "k=10": 1.0, "k=50": 2.0}[at["parameters"]]

    found = claims.claims_of_limit_label(limits(error))

    assert {claim.verdict for claim in found} == {"not reproduced"}
    assert "of 16 settings: k=1 in 16" in found[0].measured


def test_large_limits_at_sample_level_are_compared_with_small_ones():
    worse, same = (
        claims.claims_of_limit_sample(
            limits(lambda at, s=s: s if at["parameters"] == "k=50" else 1.0)
        )[0].verdict
        for s in (3.0, 1.0)
    )

    assert (worse, same) == ("reproduced", "not reproduced")


def coefficients(name, error, values=(0.0001, 0.001, 0.01, 0.1, 1.0)):
    return summary_of(
        lambda at: error(float(at["parameters"].split("=")[1]), at["epsilon"]),
        dataset=SETS, epsilon=EPSILONS, parameters=tuple(f"{name}={value}" for value in values),
    )  # fmt: skip


def coefficient_claims(name, summary):
    return claims.claims_of_coefficient(summary, name, {"c": 0.01, "h": 0.001}[name])


def test_a_coefficient_with_its_optimum_near_the_default_is_reproduced():
    def valley(value, epsilon):
        return 0.1 + (math.log10(value) + 2 + (1.0 if epsilon == "4" else 0)) ** 2 / 30

    found = verdicts(coefficient_claims("c", coefficients("c", valley)))

    assert set(found.values()) == {"reproduced"}


def test_a_coefficient_that_does_not_matter_or_is_best_elsewhere_is_not_reproduced():
    flat = coefficient_claims("c", coefficients("c", lambda *_: 0.1))
    far = coefficient_claims("c", coefficients("c", lambda value, _: 1 / value))

    assert flat[0].verdict == "not reproduced"
    assert far[-1].verdict == "not reproduced"
    assert far[1].verdict == "not reproduced"


def test_optima_that_differ_by_chance_alone_are_no_finding():
    def nearly_flat(value, epsilon):
        place = round(10 * float(epsilon) + 3 * math.log10(value))
        return 0.1 + 0.001 * (place % 7 - 3)  # less than a standard error

    claim = coefficient_claims("h", coefficients("h", nearly_flat))[1]

    assert claim.verdict == "not reproduced"
    assert "nowhere clearly worse" in claim.measured


def test_the_trend_along_h_has_a_sign():
    up, down = (
        coefficient_claims("h", coefficients("h", lambda v, _, s=s: v**s))[0] for s in (1, -1)
    )

    assert (up.verdict, down.verdict) == ("reproduced", "not reproduced")
    assert "Synth 1.00" in up.measured


def allocations(error):
    shares = [allocation(model, treatment) for model in (1, 3) for treatment in (1, 5, 7)]
    texts = tuple("shares=" + "/".join(share) for share in shares if "0.0" not in share)
    return summary_of(
        lambda at: error(at["parameters"]),
        dataset=SETS, epsilon=("1.5", "2.5"), parameters=texts,
    )  # fmt: skip


def test_a_starved_second_phase_is_recognised():
    falls, rises = (
        claims.claims_of_allocation(allocations(lambda text, s=s: float(text.split("/")[2]) ** s))[
            0
        ]
        for s in (-1, 1)
    )

    assert (falls.verdict, rises.verdict) == ("reproduced", "not reproduced")


def test_the_budget_for_ten_per_cent_lies_between_two_points_of_the_grid():
    rows = [row(1.0, epsilon="1"), row(0.2, epsilon="2"), row(0.05, epsilon="4")]

    # Between (2, 0.2) and (4, 0.05) the error is 0.8/ε², which is 0.1 at ε = √8.
    assert findings.budgets_for(rows) == (pytest.approx(math.sqrt(8)), math.inf)


def test_a_budget_outside_the_grid_is_said_to_be_outside():
    never = Summary((row(1.0, epsilon="1"), row(0.2, epsilon="2")))
    always = Summary((row(0.05, epsilon="1"), row(0.02, epsilon="2")))

    assert findings.budget_text(never) == "above 2"
    assert findings.budget_text(always) == "at most 1"


def test_a_curve_that_comes_back_above_ten_per_cent_is_said_to_do_so():
    errors = (0.2, 0.05, 0.2, 0.05)
    rows = tuple(
        row(error, epsilon=eps) for error, eps in zip(errors, ("1", "2", "4", "8"), strict=True)
    )

    reached, left = findings.budgets_for(rows)

    # Halfway between 1 and 2, and between 2 and 4, on the scale of logarithms.
    assert (reached, left) == (pytest.approx(math.sqrt(2)), pytest.approx(math.sqrt(8)))
    assert findings.budget_text(Summary(rows)) == "1.4 (until 2.8)"


def test_ten_per_cent_against_the_truth_leaves_out_sets_without_one():
    known = replace(BASE, dataset="synth", error_against_truth_mean=0.05)
    unknown = replace(BASE, dataset="lalonde", error_against_truth_mean=math.nan)

    table = findings.table_of_ten_percent(Summary((known, unknown)), findings.against_truth)

    assert "Synth" in table
    assert "Lalonde" not in table


def test_the_closest_to_the_truth_is_named_with_matching_beside_it():
    near = replace(BASE, method="calibrated-balance", error_against_truth_mean=0.05)

    claim = findings.findings_of_truth(Summary((BASE, near)))[0]

    assert claim.measured == "Synth: ours balance (label) 0.05, matching itself 0.10"


def test_times_are_compared_with_a_second_and_with_the_paper():
    def timing(seconds, method="published-label"):
        known = {"dataset": "ihdp", "method": method, "seconds": seconds}
        return pl.DataFrame(known | {"peak_megabytes": 1.0})

    fast, slow = (findings.claims_of_timings(timing(seconds))[0] for seconds in (0.1, 3.0))
    both = pl.concat([timing(0.1, "published-sample"), timing(50.0, "aim")])
    ratio = findings.claims_of_timings(both)[2]

    assert (fast.verdict, slow.verdict) == ("reproduced", "not reproduced")
    assert "(paper 0.06 s)" in fast.measured
    assert ratio.verdict == "reproduced"
    assert "500" in ratio.measured


def test_numbers_are_written_with_few_digits():
    assert [number(v) for v in (0.1234, 12.34, 4861.7, 0.001234, 1e-17, math.nan)] == [
        "0.12", "12.3", "4,862", "0.0012", "0.00", "–",
    ]  # fmt: skip


def test_similar_means_a_factor_of_two_or_a_tenth():
    assert is_similar(0.02, 0.11)
    assert is_similar(2.0, 3.9)
    assert not is_similar(0.2, 0.5)


def test_a_geometric_mean_of_nothing_is_not_a_number():
    assert math.isnan(geometric_mean([]))
    assert geometric_mean([1.0, 100.0]) == pytest.approx(10.0)


DRAWINGS = {
    "coefficient-c": coefficients("c", lambda value, _: value),
    "budget-allocation": allocations(lambda text: float(text.split("/")[2])),
    "limit-label": limits(lambda _: 1.0),
    "error-against-truth": summary_of(
        lambda _: 0.1, dataset=("ihdp", "synth-draws"), epsilon=EPSILONS
    ),
    "error-against-n": summary_of(lambda _: 0.1, dataset=("confounded-100", "confounded-1000")),
    "epsilon-for-ten-percent": summary_of(lambda _: 0.1, dataset=SETS, epsilon=EPSILONS),
    "several-arms": summary_of(
        lambda _: 0.1, dataset=("several-arms-3-100", "several-arms-4-100"), epsilon=EPSILONS
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_layout_is_drawn_with_its_axes_named(name, tmp_path):
    (path,) = EXPERIMENTS[name].draw(DRAWINGS[name], tmp_path)

    text = path.with_suffix(".svg").read_text(encoding="utf-8")
    assert path.with_suffix(".png").stat().st_size > 5_000
    assert "error" in text or "share of ε₂" in text
    for _, write in EXPERIMENTS[name].tables:
        assert write(DRAWINGS[name], pl.DataFrame()).startswith("| ")
    assert EXPERIMENTS[name].claims(DRAWINGS[name], pl.DataFrame())


def test_other_numbers_of_neighbours_get_a_figure_of_their_own(tmp_path):
    summary = summary_of(
        lambda _: 0.1,
        neighbors=(5, 1, 3), dataset=("synth",), epsilon=EPSILONS,
    )  # fmt: skip

    paths = EXPERIMENTS["end-to-end"].draw(summary, tmp_path)

    assert [path.name for path in paths] == ["figure", "figure-appendix"]
    assert "N = 3" in paths[1].with_suffix(".svg").read_text(encoding="utf-8")
