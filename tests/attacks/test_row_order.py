"""A file sorted by outcome: replacing one outcome moves the record and every row in between."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from studies import make_study

from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.disk_columns import _on_disk, reorder_rows
from private_ate.engines.local import LocalPool, LocalStudy
from private_ate.methods.published.method import PublishedOptions, estimate_published
from private_ate.privacy.entropy import SecureEntropy, SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.privacy.samplers import random_order
from private_ate.request import Request

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
REQUEST = Request("label", Fraction(1), neighbors=1, options=PublishedOptions(k=2))
ROUNDING = 1e-9
CHI_SQUARED_23 = 58.0  # exceeded with probability 1e-4 by 24 equally likely orders


@dataclass(frozen=True, slots=True)
class ScoredStudy(LocalStudy):
    """A study whose public scores are its covariate, so that equal distances are exact."""

    def pool(self, coefficients):  # noqa: ARG002  # the scores are given
        return LocalPool.sort((4 * self.covariates[0]).astype(np.int64), self.treatment)


@dataclass(slots=True)
class Ordered(Noise):
    """A choke point with a chosen order of rows, which keeps what it hears."""

    entropy: object = field(default_factory=lambda: SeededEntropy(1))
    order: object = None
    heard: object = None

    def secret_order(self, rows):
        return np.arange(rows) if self.order is None else np.asarray(self.order)

    def _release(self, spend, values, draw):
        self.spends.append(spend)
        self.heard = (spend.sensitivity, tuple(values)) if isinstance(values, list) else None
        return draw()


def sorted_neighbours():
    """Return a file sorted by outcome and the file in which one outcome was replaced."""
    places = np.array([0.0, 1.0, 0.0, 0.5, 1.0, 0.0])
    treatment = np.array([False, False, True, True, False, False])
    outcome = OUTCOME_STEPS * np.array([0, 0, 1, 1, 1, 1])
    replaced = outcome.copy()
    replaced[3] = 0
    return [sorted_study(places, treatment, values) for values in (outcome, replaced)]


def sorted_study(places, treatment, outcome):
    order = np.argsort(outcome, kind="stable")
    return ScoredStudy(DOMAIN, places[None, order], treatment[order], outcome[order].astype("i4"))


def heard_in(study, order):
    noise = Ordered(order=order)
    estimate_published(study, REQUEST, noise)
    return noise.heard


def laws(study):
    """Return every declared sensitivity with the sums that go with it, over all orders."""
    return Counter(heard_in(study, order) for order in itertools.permutations(range(study.size)))


def density(law, declared, answer):
    """Return the density of an answer: a mixture over orders of two Laplace variables."""
    total = sum(law.values())
    return sum(
        count / total * math.prod(
            math.exp(-abs(value - middle) / size) / (2 * size)
            for value, middle, size in zip(answer, sums, declared, strict=True)
        )
        for (sensitivities, sums), count in law.items()
        if sensitivities == declared
    )  # fmt: skip


def test_in_the_order_of_a_sorted_file_one_outcome_moves_more_than_is_declared():
    first, second = (heard_in(study, None) for study in sorted_neighbours())

    moved = [abs(a - b) / s for a, b, s in zip(first[1], second[1], first[0], strict=True)]

    assert first[0] == second[0]
    assert sum(moved) == 1.5


def test_no_answer_is_more_likely_by_more_than_epsilon_for_a_neighbour_that_was_sorted_again():
    first, second = (laws(study) for study in sorted_neighbours())
    classes = {declared for law in (first, second) for declared, _ in law}

    losses = []
    for declared in classes:
        sums = {s for law in (first, second) for d, s in law if d == declared}
        far = 40 * max(declared)
        ends = [sorted({s[arm] for s in sums} | {-far, far}) for arm in (0, 1)]
        for answer in itertools.product(*ends):
            one, other = (density(law, declared, answer) for law in (first, second))
            losses.append(abs(math.log(one / other)) if one and other else math.inf)

    assert max(losses) <= 1 + ROUNDING


def test_the_law_of_what_is_released_is_the_same_for_every_order_of_a_file():
    study, _ = sorted_neighbours()
    small = study.reordered(np.array([0, 2, 3, 4, 5]))
    law = laws(small)

    assert len(law) > 1, "the order of rows must matter for this test to say anything"
    for order in ([4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        assert laws(small.reordered(np.array(order))) == law


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_permuted_table_under_the_permuted_order_gives_the_same_release_bit_by_bit(level):
    study = make_study(3, rows=300)
    rng = np.random.default_rng(4)
    moved, order = rng.permutation(300), rng.permutation(300)
    back = np.argsort(moved)
    request = Request(level, Fraction(1))

    one = estimate_published(study, request, Ordered(order=order))
    other = estimate_published(study.reordered(moved), request, Ordered(order=back[order]))

    assert one == other
    assert one != estimate_published(study, request, Ordered(order=back[order]))


def chi_squared(draw_order):
    rounds = 24_000
    counts = Counter(tuple(draw_order().tolist()) for _ in range(rounds))
    expected = rounds / 24
    cells = [counts[order] for order in itertools.permutations(range(4))]
    return sum((count - expected) ** 2 / expected for count in cells)


def test_all_orders_are_equally_likely():
    entropy = SeededEntropy(5)

    assert chi_squared(lambda: random_order(4, entropy)) < CHI_SQUARED_23


def test_an_order_that_breaks_ties_of_few_bits_by_row_is_found_out():
    entropy = SeededEntropy(5)

    def biased():
        return np.argsort(np.frombuffer(entropy.draw(4), dtype=np.uint8) & 15, kind="stable")

    assert chi_squared(biased) > CHI_SQUARED_23


@dataclass
class Scripted:
    """Bytes that were written down before."""

    parts: list

    def draw(self, count):
        part = self.parts.pop(0)
        assert len(part) == count
        return part


def test_equal_words_are_drawn_anew_and_never_fall_back_on_the_order_of_rows():
    tied = np.array([7, 7, 1], dtype=np.uint64).tobytes()
    fresh = np.array([9, 3, 5], dtype=np.uint64).tobytes()

    assert random_order(3, Scripted([tied, tied, fresh])).tolist() == [1, 2, 0]


@pytest.mark.system_bytes
def test_every_release_draws_an_order_of_its_own():
    orders = {tuple(Noise(SecureEntropy()).secret_order(50).tolist()) for _ in range(20)}

    assert len(orders) == 20
    assert all(sorted(order) == list(range(50)) for order in orders)


def test_columns_on_disk_stay_on_disk_when_rows_are_reordered():
    mapped = _on_disk((2, 5), np.float64)
    mapped[:] = np.arange(10).reshape(2, 5)

    copy = reorder_rows(mapped, np.array([4, 0, 1, 3, 2]))

    assert copy.tolist() == [[4, 0, 1, 3, 2], [9, 5, 6, 8, 7]]
    assert not copy.flags.owndata
    assert mapped[0].tolist() == [0, 1, 2, 3, 4]


def test_a_study_in_another_order_holds_the_same_rows():
    study = make_study(2, rows=30)
    order = np.random.default_rng(0).permutation(30)

    other = study.reordered(order)

    assert np.array_equal(other.covariates, study.covariates[:, order])
    assert np.array_equal(other.treatment, study.treatment[order])
    assert np.array_equal(other.outcome, study.outcome[order])
