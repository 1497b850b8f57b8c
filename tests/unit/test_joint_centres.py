"""The joint release of centres, spreads and flags: levels, boxes, and what neighbours move."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from private_ate.errors import NumericRangeError
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.joint import JointRule, draw_centres, nearest_centres
from private_ate.privacy.ranks import CentreRule

BOUND = 1000
CANDIDATES = np.array([-1000, -300, -90, -40, -10, 0, 5, 12, 40, 90, 300, 1000, 1000])


def rule_of(coordinates=1, *, flags=True, vote=True, trim=2):
    centre = CentreRule(CANDIDATES, BOUND, trim)
    return JointRule(centre, (400, 140, 50, 18), coordinates, flags, vote)


def random_blocks(rng, count, coordinates):
    """Blocks of all kinds: normal, equal, at the bounds, with deviations that agree or do not."""
    columns = []
    for _ in range(coordinates):
        kind = rng.integers(3)
        effects = [
            rng.normal(0, 60, count), rng.choice([-BOUND, 0, 20, BOUND], count),
            rng.uniform(-BOUND, BOUND, count),
        ][kind]  # fmt: skip
        deviations = np.exp(rng.normal(4, rng.choice([0.1, 1.0]), count))
        bits = rng.random(count) < rng.random()
        columns += [effects, deviations, rng.normal(0, 100, count), bits]
    votes = rng.random(count) < rng.random()
    return np.rint(np.column_stack([*columns, votes])).astype(np.int64)


def rank_level(values, candidate, trim):
    size = len(values)
    window = max(size - 2 * trim, 2 - size % 2)
    low = (size - window) // 2
    ordered = sorted(min(max(int(value), -BOUND), BOUND) for value in values)

    def at(place):
        return -BOUND if place < 0 else BOUND if place >= size else ordered[place]

    for level in range(size - low + 1):
        upper = sum(at(low + level + i) for i in range(window))
        lower = sum(at(low - level + i) for i in range(window))
        if lower <= window * candidate <= upper:
            return level
    raise AssertionError


def level_by_definition(rule, blocks, point):
    """The level of one combination, written as docs/proofs/blocks.md has it."""
    size, half = len(blocks), len(blocks) // 2
    parts = [0]
    *coordinates, vote = point
    for place, (spread_place, flag, centre_place) in enumerate(coordinates):
        v, sd, difference, bit = blocks[:, 4 * place : 4 * place + 4].T
        spread, c = rule.spreads[spread_place], int(CANDIDATES[centre_place])
        parts.append(rank_level(v, c, rule.centre.trim))
        for x in (0.5, 1, 1.5, 2, 3, 4):
            for sign in (-1, 1):
                count = int((v <= c + round(sign * x * spread)).sum())
                fits = math.floor(size * ndtr(sign * x))
                parts.append(abs(count - fits) - math.ceil(0.1 * size))
        for factor, spare in ((math.sqrt(2), half), (2, math.ceil(0.2 * size))):
            above = int((sd > round(spread * factor)).sum())
            below = int((sd < round(spread / factor)).sum())
            parts.append(max(above, below) - spare)
        if rule.asks_flags:
            reach = round(0.8 * spread)
            said = max(
                int(((difference > reach) | (bit != 0)).sum()),
                int(((difference < -reach) | (bit != 0)).sum()),
            )
            parts.append(half - said if flag else said - half)
    if rule.asks_vote:
        yes = int((blocks[:, -1] != 0).sum())
        parts.append(half - yes if vote else yes - half)
    return max(parts)


def all_points(rule):
    flags = (0, 1) if rule.asks_flags else (0,)
    each = list(itertools.product(range(len(rule.spreads)), flags, range(CANDIDATES.size)))
    votes = (0, 1) if rule.asks_vote else (0,)
    return [(*point, vote) for *point, vote in itertools.product(*[each] * rule.coordinates, votes)]


def levels_of(rule, blocks):
    """The levels of all combinations from the fast code, in the order of `all_points`."""
    *options, last = [*rule.boxes(blocks), None] if not rule.asks_vote else rule.boxes(blocks)
    tables = [np.concatenate([one.levels(row) for row in range(len(one.counts))])
              for one in options]  # fmt: skip
    votes = [0] if last is None else [int(last.levels(row)[0]) for row in range(2)]
    found = np.array(votes)
    for table in reversed(tables):
        found = np.maximum(table[:, None], found.ravel()[None, :])
    return found.ravel()


@pytest.mark.parametrize(("flags", "vote"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("seed", range(5))
def test_levels_are_those_of_the_definition(flags, vote, seed):
    rng = np.random.default_rng(seed)
    rule = rule_of(flags=flags, vote=vote, trim=int(rng.integers(0, 6)))
    blocks = random_blocks(rng, int(rng.integers(3, 16)), 1)

    wanted = [level_by_definition(rule, blocks, point) for point in all_points(rule)]

    assert levels_of(rule, blocks).tolist() == wanted


@pytest.mark.parametrize("coordinates", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_levels_move_by_no_more_than_the_blocks_that_change(coordinates, seed):
    rng = np.random.default_rng([seed, coordinates])
    rule = rule_of(coordinates, trim=int(rng.integers(0, 6)))
    blocks = random_blocks(rng, int(rng.integers(4, 20)), coordinates)
    changed = int(rng.integers(1, 4))
    other = blocks.copy()
    places = rng.choice(len(blocks), changed, replace=False)
    other[places] = random_blocks(rng, changed, coordinates)

    moved = np.abs(levels_of(rule, blocks) - levels_of(rule, other)).max()

    assert moved <= changed


def hill_climbed(rule, changed, seed, steps=40):
    """The largest change of a log probability that a search finds, over ε."""
    rng = np.random.default_rng(seed)
    blocks = random_blocks(rng, 9, rule.coordinates)
    other = blocks.copy()
    other[:changed] = random_blocks(rng, changed, rule.coordinates)

    def loss(one, two):
        laws = []
        for each in (one, two):
            weights = np.exp(-levels_of(rule, each) / (2 * changed))
            laws.append(np.log(weights / weights.sum()))
        return float(np.abs(laws[0] - laws[1]).max())

    worst = loss(blocks, other)
    for _ in range(steps):
        one, two = blocks.copy(), other.copy()
        fresh = random_blocks(rng, 1, rule.coordinates)[0]
        place = int(rng.integers(len(blocks)))
        two[place] = fresh
        if place >= changed:
            one[place] = fresh
        found = loss(one, two)
        if found >= worst:
            blocks, other, worst = one, two, found
    return worst


@pytest.mark.parametrize("coordinates", [1, 2])
@pytest.mark.parametrize("changed", [1, 3])
def test_no_pair_that_a_search_finds_loses_more_than_epsilon(coordinates, changed):
    worst = max(hill_climbed(rule_of(coordinates), changed, seed) for seed in range(2))

    assert 0.3 < worst <= 1 + 1e-9


@pytest.mark.parametrize("coordinates", [1, 2])
def test_draws_follow_the_law(coordinates):
    rng = np.random.default_rng(coordinates)
    centre = CentreRule(np.array([-40, 0, 12, 90]), BOUND, 2)
    rule = JointRule(centre, (140, 50), coordinates, asks_flags=True, asks_vote=True)
    blocks = random_blocks(rng, 8, coordinates)
    levels = levels_of(rule, blocks)
    law = np.exp(-levels * 0.4)
    law /= law.sum()
    entropy = SeededEntropy(5)
    shape = (*[2, 2, 4] * coordinates, 2)
    seen = np.zeros(shape)
    draws = 6000
    for _ in range(draws):
        drawn = draw_centres(rule, blocks, Fraction(2, 5), entropy)
        place = [
            (spread, int(flag), centre.candidates.tolist().index(c))
            for c, spread, flag in zip(drawn.centres, drawn.spreads, drawn.flags, strict=True)
        ]
        seen[(*itertools.chain(*place), int(drawn.vote))] += 1

    expected = draws * law
    rare = expected < 5
    observed = seen.ravel()
    total = float(((observed - expected)[~rare] ** 2 / expected[~rare]).sum())
    count = int((~rare).sum())
    assert total < count + 5 * math.sqrt(2 * count)
    assert observed[rare].sum() < 2 * expected[rare].sum() + 30


@pytest.mark.parametrize("coordinates", [2, 3])
def test_shells_count_every_combination_once(coordinates):
    rng = np.random.default_rng(3)
    rule = rule_of(coordinates)
    blocks = random_blocks(rng, 7, coordinates)

    within = [one.counts.sum(axis=0).cumsum() for one in rule.boxes(blocks)]
    boxes = np.prod(np.array(within, dtype=object), axis=0)

    levels = levels_of(rule, blocks)
    assert [int((levels <= level).sum()) for level in range(8)] == boxes.tolist()


def test_agreeing_blocks_leave_little_to_far_candidates():
    blocks = np.zeros((60, 5), dtype=np.int64)
    blocks[:, 0] = np.rint(50 * np.linspace(-1.9, 1.9, 60))
    blocks[:, 1] = 50
    rule = rule_of(vote=False)

    levels = levels_of(rule, blocks)
    far = np.abs(np.tile(CANDIDATES, 2 * len(rule.spreads))) >= 300

    assert levels[far].min() >= 0.75 * 60
    assert levels.min() <= 2
    nearest = nearest_centres(rule, blocks)
    assert abs(nearest.centres[0]) <= 12
    assert rule.spreads[nearest.spreads[0]] == 50
    assert not nearest.flags[0]


def test_other_tables_than_the_rule_speaks_of_are_refused():
    with pytest.raises(NumericRangeError, match="every block"):
        rule_of(2).boxes(np.zeros((4, 5), dtype=np.int64))
    with pytest.raises(NumericRangeError, match="positive spreads"):
        JointRule(rule_of().centre, (0,), 1, asks_flags=True, asks_vote=True)


def test_rules_that_differ_have_other_fingerprints():
    rules = [rule_of(), rule_of(2), rule_of(flags=False), rule_of(vote=False), rule_of(trim=3)]

    assert len({rule.fingerprint() for rule in rules}) == len(rules)
