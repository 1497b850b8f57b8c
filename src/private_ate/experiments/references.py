"""Data sets of the experiments by name, and the effects that estimates are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from private_ate import datasets
from private_ate.arrays import Bits, Codes, Floats, Indices, Integers
from private_ate.data.files import read_table
from private_ate.datasets import synth
from private_ate.datasets.dataset import Dataset
from private_ate.datasets.packaged import load_acic
from private_ate.domain import Categories, Domain, Interval, Treatment, label_text
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, DatasetError
from private_ate.experiments.families import SETTINGS, Study
from private_ate.models.propensity import fit_propensity

__all__ = [
    "PAPER_SETS",
    "REFERENCES",
    "Records",
    "Source",
    "adjusted_means",
    "boosted_contrasts",
    "contrast_error",
    "contrasts_of",
    "display_name",
    "fit_chances",
    "is_installed",
    "matched_means",
    "matched_weights",
    "open_source",
    "plain_contrasts",
    "plain_means",
    "records_of",
    "reference_effects",
]

_LEAST_CHANCE: Final = 0.001  # one over the largest weight of a unit in the doubly robust mean
_LEAST_BOOSTED: Final = 0.02  # the same of boosted models
_FOLDS: Final = 5
_NORMAL: Final = 1.959964
PAPER_SETS = ("ihdp", "lalonde", "acic", "synth")
_DISPLAY = {
    "ihdp": "IHDP",
    "lalonde": "Lalonde",
    "acic": "ACIC",
    "synth": "Synth",
    "acic-settings": "ACIC, ten settings",
    "synth-draws": "Synth, many draws",
}
_CONFOUNDED = "confounded-"
_SEVERAL = "several-arms-"


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a study of several arms, as arrays.

    Attributes
    ----------
    covariates : array, shape (n, d)
        Encoded to [0, 1] by the declared bounds.
    codes : array, shape (n,)
        Arms from 0, the reference, to K − 1.
    outcome : array, shape (n,)
        In its own units.
    arms : int
        Declared arms (K).
    """

    covariates: Floats
    codes: Integers
    outcome: Floats
    arms: int


def records_of(dataset: Dataset | Study) -> Records:
    """Return the arrays of a data set whose covariates are numbers, clipped as declared."""
    frame, domain, columns = dataset.frame, dataset.domain, []
    for name, kind in domain.covariates.items():
        if isinstance(kind, Categories):
            msg = f"references of several arms need covariates that are numbers, not {name!r}"
            raise ArgumentError(msg)
        inside = np.clip(frame[name].to_numpy(), kind.low, kind.high)
        columns.append((inside - kind.low) / kind.width)
    outcome = frame[domain.outcome.column].to_numpy().astype(np.float64)
    coded = domain.treatment.coded
    places = {label: code for code, label in enumerate(coded)}
    labels = map(label_text, frame[domain.treatment.column])
    return Records(
        covariates=np.column_stack(columns) if columns else np.zeros((frame.height, 0)),
        codes=np.array([places[label] for label in labels], dtype=np.int64),
        outcome=np.clip(outcome, domain.bounds.low, domain.bounds.high),
        arms=len(coded),
    )


def contrasts_of(means: Floats) -> Floats:
    """Return all differences of means, those with the reference first, then the other pairs."""
    pairs = combinations(range(len(means)), 2)
    return np.array([means[arm] - means[against] for against, arm in pairs])


def contrast_error(contrasts: Floats, truth: Floats) -> float:
    """Return the mean error of contrasts relative to their mean size."""
    return float(np.abs(contrasts - truth).mean() / np.abs(truth).mean())


def plain_means(records: Records) -> Floats:
    """Return the means of the arms as they are."""
    chosen = (records.codes == arm for arm in range(records.arms))
    return np.array([records.outcome[rows].mean() for rows in chosen])


def plain_contrasts(records: Records) -> tuple[Floats, Floats]:
    """Return plain differences of the arms, and half-widths of their 95 % intervals."""
    arms = [records.outcome[records.codes == arm] for arm in range(records.arms)]
    errors = [arm.var(ddof=1) / arm.size for arm in arms]
    variances = [one + other for one, other in combinations(errors, 2)]
    return contrasts_of(plain_means(records)), _NORMAL * np.sqrt(variances)


def matched_means(records: Records, neighbors: int = 5) -> Floats:
    """Return the means of matching on each arm's own propensity score, without limits and noise.

    For every arm, each unit outside it is matched to its nearest units inside by ``|e_t − e_t′|``;
    units at equal distance share. Scores are those of a multinomial logit with ridge 1/n.
    """
    chances = fit_chances(records.covariates, records.codes, records.arms)
    means = []
    for arm in range(records.arms):
        inside = records.codes == arm
        weights = matched_weights(chances[:, arm], inside, neighbors)
        means.append(weights @ records.outcome[inside] / len(records.codes))
    return np.array(means)


def matched_weights(score: Floats, inside: Bits, neighbors: int) -> Floats:
    """Return the weights of an arm's units: one, and what units outside the arm give them.

    A unit outside gives one in all, in equal parts to its nearest units inside; where the last of
    these are equally far, they share what is left. Weights add up to n.
    """
    places, group, sizes = np.unique(score[inside], return_inverse=True, return_counts=True)
    queries = score[~inside]
    wanted = min(neighbors, int(sizes.sum()))
    left: Indices = np.searchsorted(places, queries) - 1  # the nearest group below
    right: Indices = left + 1
    missing = np.full(queries.size, float(wanted))
    given = np.zeros(places.size)
    while np.any(missing > 0):
        below = _distance(places, left, queries)
        above = _distance(places, right, queries)
        nearest = np.minimum(below, above)
        takes = ((left, below == nearest, -1), (right, above == nearest, 1))
        open_rows = missing > 0
        held = np.zeros(queries.size)
        for pointer, chosen, _ in takes:
            held += np.where(chosen, sizes[np.clip(pointer, 0, places.size - 1)], 0)
        share = np.minimum(missing, held) / np.maximum(held, 1.0) / wanted
        for pointer, chosen, step in takes:
            used = chosen & open_rows
            np.add.at(given, pointer[used], share[used])
            pointer[used] += step
        missing = np.where(open_rows, missing - np.minimum(missing, held), 0.0)
    weights: Floats = 1.0 + given[group]
    return weights


def adjusted_means(records: Records) -> Floats:
    """Return augmented inverse-probability-weighted means, correct if either model is.

    Both models see the covariates and their squares: a multinomial logit with ridge 1/n for the
    arms, least squares in each arm for the outcome. No chance counts as less than 0.001.
    """
    squares = records.covariates**2
    curved = [column for column in squares.T if np.any((column != 0) & (column != 1))]
    features = np.column_stack([records.covariates, *curved])
    chances = fit_chances(features, records.codes, records.arms)
    design = np.column_stack([np.ones(len(features)), features])
    means = []
    for arm in range(records.arms):
        inside = records.codes == arm
        slopes = np.linalg.lstsq(design[inside], records.outcome[inside], rcond=None)[0]
        expected = design @ slopes
        left = (records.outcome - expected)[inside]
        weights = 1.0 / np.maximum(chances[inside, arm], _LEAST_CHANCE)
        means.append(expected.mean() + (weights @ left) / len(design))
    return np.array(means)


def boosted_contrasts(records: Records, probability: float | None = None) -> tuple[Floats, Floats]:
    """Return cross-fitted AIPW contrasts with boosted models, and half-widths of 95 % intervals.

    Gradient boosting of scikit-learn (60 rounds of trees with 8 leaves), five folds, chances of
    at least 0.02; in a trial the chances are known.
    """
    # scikit-learn is an extra
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    small = {"max_iter": 60, "max_leaf_nodes": 8, "random_state": 1}
    covariates, outcome, size = records.covariates, records.outcome, records.outcome.size
    fold = np.random.default_rng(7).permutation(size) % _FOLDS
    scores = np.zeros((records.arms, size))
    for place in range(_FOLDS):
        held, kept = fold == place, fold != place
        if probability is None:
            model = HistGradientBoostingClassifier(**small)
            fitted = model.fit(covariates[kept], records.codes[kept])
            chances = np.clip(fitted.predict_proba(covariates[held]), _LEAST_BOOSTED, 1)
        else:
            chances = np.tile([1 - probability, probability], (int(held.sum()), 1))
        for arm in range(records.arms):
            rows = kept & (records.codes == arm)
            model = HistGradientBoostingRegressor(**small)
            expected = model.fit(covariates[rows], outcome[rows]).predict(covariates[held])
            left = (records.codes[held] == arm) * (outcome[held] - expected)
            scores[arm, held] = expected + left / chances[:, arm]
    gaps = contrasts_of(scores)
    return gaps.mean(axis=1), _NORMAL * gaps.std(axis=1, ddof=1) / math.sqrt(size)


def fit_chances(covariates: Floats, codes: Integers, arms: int) -> Floats:
    """Return every unit's fitted chance of every arm, of shape (n, K).

    Minimises ``mean −log e_T + λ Σ‖w_k‖²`` with λ = 1/n.
    """
    treatment = Treatment("t", arms=tuple(map(str, range(arms))))
    domain = Domain(treatment, ("y", Interval(0, 1)), {})
    coded: Bits | Codes = codes == 1 if arms == 2 else codes.astype(np.uint8)
    study = LocalStudy(domain, np.ascontiguousarray(covariates.T), coded, None)
    return fit_propensity(study, 1.0 / codes.size).probabilities(covariates)


def _distance(places: Floats, pointer: Indices, queries: Floats) -> Floats:
    """Return how far the groups are that pointers name; infinitely far beyond the ends."""
    known = (pointer >= 0) & (pointer < places.size)
    near = places[np.clip(pointer, 0, places.size - 1)]
    return np.where(known, np.abs(near - queries), np.inf)


@dataclass(frozen=True, slots=True)
class Source:
    """A data set with its rows encoded; of a trial, with its probability of treatment."""

    dataset: Dataset
    study: LocalStudy
    probability: float | None = None


def display_name(family: str) -> str:
    """Return the name of a family of data sets in figures."""
    if family in SETTINGS:
        return SETTINGS[family].words
    if family.startswith(_SEVERAL):
        study = _several_arms(family)
        return f"{study.arms} arms, n = {study.size}"
    if family.startswith(_CONFOUNDED):
        return f"confounded, n = {family.removeprefix(_CONFOUNDED)}"
    return _DISPLAY.get(family, family)


def is_installed(family: str) -> bool:
    """Say whether the family's rows can be read here."""
    try:
        _load(family, 1)
    except DatasetError:
        return False
    return True


@lru_cache(maxsize=24)  # twenty draws and the benchmarks
def open_source(family: str, draw: int) -> Source:
    """Load and encode a member of a family; the last few are kept."""
    dataset = _load(family, draw)
    study = LocalStudy.encode(read_table(dataset.frame), dataset.domain)
    return Source(dataset, study, SETTINGS[family].probability if family in SETTINGS else None)


@lru_cache(maxsize=1024)
def reference_effects(family: str, draw: int, neighbors: int) -> dict[str, list[float]]:
    """Return what is known or estimated without privacy of a member of a family, by name.

    Each is a list of contrasts, all pairs with the reference first: ``truth`` where the outcomes
    were simulated; ``matching`` without limits and noise, except for the referee's settings;
    ``aipw`` of several arms. The referee's settings have ``plain``, ``aipw`` and ``boosted``, and
    the half-widths ``boosted half`` of its 95 % intervals.
    """
    source = open_source(family, draw)
    dataset = source.dataset
    truth = list(dataset.true_contrasts.values())
    if not truth and dataset.true_effect is not None:
        truth = [dataset.true_effect]
    found = {"truth": truth} if truth else {}
    if family not in SETTINGS and not family.startswith(_SEVERAL):
        return found | {"matching": [dataset.exact_effect(neighbors)]}
    records = records_of(dataset)
    found["aipw"] = contrasts_of(adjusted_means(records)).tolist()
    if family in SETTINGS:
        boosted, half = boosted_contrasts(records, source.probability)
        found["plain"] = contrasts_of(plain_means(records)).tolist()
        return found | {"boosted": boosted.tolist(), "boosted half": half.tolist()}
    return found | {"matching": contrasts_of(matched_means(records, neighbors)).tolist()}


def _load(family: str, draw: int) -> Dataset:
    if family in SETTINGS:
        return SETTINGS[family].draw(draw)
    if family == "synth-draws":
        return synth.draw(draw)
    if family == "acic-settings":
        return load_acic(draw)
    if family.startswith(_CONFOUNDED):
        return datasets.generate(_confounded(family), seed=draw)
    if family.startswith(_SEVERAL):
        return datasets.generate(_several_arms(family), seed=draw)
    return datasets.load(family)


def _confounded(family: str) -> datasets.Confounded:
    size = family.removeprefix(_CONFOUNDED)
    if not size.isdigit():
        msg = f"a family of confounded studies is named confounded-SIZE, not {family!r}"
        raise ArgumentError(msg)
    return datasets.Confounded(size=int(size))


def _several_arms(family: str) -> datasets.SeveralArms:
    arms, _, size = family.removeprefix(_SEVERAL).partition("-")
    if not (arms.isdigit() and size.isdigit()):
        msg = f"a family of studies of several arms is named several-arms-ARMS-SIZE, not {family!r}"
        raise ArgumentError(msg)
    return datasets.SeveralArms(size=int(size), arms=int(arms))


REFERENCES: Final[Mapping[str, Callable[[Records], Floats]]] = {
    "plain": plain_means,
    "matching": matched_means,
    "aipw": adjusted_means,
}
"""Non-private estimates of all arms' means by name."""
