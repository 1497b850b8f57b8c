"""No mechanism without a law test that rejects a wrong scale and a fault that the replay finds."""

import inspect
from fractions import Fraction

import pytest

from mechanisms import MECHANISMS
from mutants import MUTANTS, ROOT
from private_ate.audit import replay
from private_ate.audit.replay import Recording, broken_promises, moved_share
from private_ate.privacy import rejection_samplers, samplers
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.metrics import Metric
from private_ate.privacy.noise import Noise

# Seeds are fixed: a right law fails with the probability of the first, once and for all.
SURELY_RIGHT, SURELY_WRONG = 1e-4, 1e-9
every_mechanism = pytest.mark.parametrize("name", sorted(MECHANISMS))
# Draws that see no record, are kept inside and cost nothing; tests/attacks/test_row_order.py.
SECRETS = {"secret_order", "secret_bytes"}


def mechanisms_of(choke_point):
    """Return the public methods, which are all ways to have noise drawn."""
    members = inspect.getmembers(choke_point, inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")}


def test_every_mechanism_has_a_law_test_and_a_planted_fault():
    missing = mechanisms_of(Noise) ^ set(MECHANISMS) ^ SECRETS
    assert not missing, f"see CONTRIBUTING.md, 'A new mechanism': {sorted(missing)}"


def test_a_mechanism_that_somebody_adds_is_missed():
    class Wider(Noise):
        def cheap(self, step, value):
            return self._release(step, value, lambda: value)

    assert mechanisms_of(Wider) - set(MECHANISMS) - SECRETS == {"cheap"}


@every_mechanism
def test_the_noise_follows_its_law_and_a_wrong_scale_is_rejected(name):
    mechanism = MECHANISMS[name]

    honest = mechanism.draw(Noise(SeededEntropy(21)), mechanism.declared)
    scarce = mechanism.draw(Noise(SeededEntropy(22)), mechanism.too_small)

    assert mechanism.law(honest) > SURELY_RIGHT
    assert mechanism.law(scarce) < SURELY_WRONG


def replayed(mechanism, sensitivity):
    """Call a mechanism on both neighbours, the second time with the first answers."""
    first = Recording()
    mechanism.call(Noise(SeededEntropy(1), first), mechanism.neighbours[0], sensitivity)
    second = Recording(source=first)
    mechanism.call(Noise(SeededEntropy(2), second), mechanism.neighbours[1], sensitivity)
    return first, second


@every_mechanism
def test_neighbours_as_far_apart_as_declared_pass_and_a_smaller_declaration_is_found(name):
    mechanism = MECHANISMS[name]

    first, second = replayed(mechanism, mechanism.declared)

    assert first.calls[0].spend.mechanism == name
    assert first.calls[0].spend.metric is mechanism.metric
    assert broken_promises(first, second) == []
    assert moved_share(first.calls[0], second.calls[0]) == pytest.approx(1, abs=1e-5)

    found = broken_promises(*replayed(mechanism, mechanism.too_small))

    assert any("'x' moves by" in finding for finding in found)


@every_mechanism
def test_a_mechanism_is_heard_before_it_draws_and_answers_what_it_is_told(name):
    mechanism, told = MECHANISMS[name], []

    class Silence(Exception):  # noqa: N818  # ends the call, is no error
        pass

    class Ear:
        def record(self, spend, values, draw):
            told.append((spend, values, draw))
            raise Silence

    noise = Noise(SeededEntropy(1), Ear())
    with pytest.raises(Silence):
        mechanism.call(noise, mechanism.neighbours[0], mechanism.declared)

    assert [spend for spend, _, _ in told] == noise.spends
    assert noise.cost.epsilon + noise.cost.rho > 0


def test_every_metric_has_a_ruler():
    # Inputs that are not vectors of integers, and a declaration of more than a sensitivity.
    special = {Metric.ROWS, Metric.GRADIENT, Metric.SMOOTH, Metric.MOVES, Metric.GROUPS}
    assert set(replay._SHARES) == set(Metric) - special
    assert {mechanism.metric for mechanism in MECHANISMS.values()} == set(Metric)


def caches():
    """Return what the samplers remember."""
    modules = (samplers, rejection_samplers)
    return [value for module in modules for value in vars(module).values()
            if hasattr(value, "cache_info")]  # fmt: skip


@every_mechanism
def test_a_neighbour_leaves_the_samplers_memory_as_it_found_it(name):
    """A look into a memory takes 0.03 ms if a number was there before and 7 ms if it was not."""
    mechanism = MECHANISMS[name]
    for seed in range(5):
        mechanism.call(Noise(SeededEntropy(seed)), mechanism.neighbours[0], mechanism.declared)
    before = [(cache.cache_info().misses, cache.cache_info().currsize) for cache in caches()]

    for seed in range(5):
        mechanism.call(Noise(SeededEntropy(seed)), mechanism.neighbours[1], mechanism.declared)

    after = [(cache.cache_info().misses, cache.cache_info().currsize) for cache in caches()]
    assert after == before


def test_two_moved_coordinates_are_never_within_one_of_several():
    noise, recordings = Noise(SeededEntropy(1)), [Recording(), Recording()]
    for recording, values in zip(recordings, ([0, 0], [1, 1]), strict=True):
        noise.recorder = recording
        noise.staircase_disjoint("x", values, sensitivities=[100, 100], epsilon=Fraction(1))

    assert broken_promises(*recordings)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.title)
def test_every_mutant_can_still_be_written_into_the_sources(mutant):
    source = (ROOT / "src" / "private_ate" / mutant.path).read_text("utf-8")

    assert mutant.honest in source
    # A fault that is no program at all would be noticed by any test.
    compile(source.replace(mutant.honest, mutant.faulty, 1), mutant.path, "exec")
    assert (ROOT / mutant.test).is_file()
