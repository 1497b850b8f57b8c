"""Whether the samplers draw from the distributions that the proofs assume."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats, Integers
from private_ate.privacy.entropy import Entropy, SecureEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.trimmed_mean import CentreRule

SMALLEST_P = 1e-8  # a right sampler fails one of a hundred such tests once in a million audits
# Dyadic and not, from nearly always zero to far beyond a machine's float grid.
RATES = tuple(
    Fraction(text)
    for text in (
        "5", "3", "2", "1", "1/2", "1/3", "1/7", "0.1", "1/16", "0.01", "1/97", "1/1000",
        "1/4096", "0.00001", "1/65537", "1/1048576", "3/10000019", "1/999999937", "1/1099511627776",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SamplerTest:
    """One test of one sampler: its name and the probability of a result at least as odd."""

    name: str
    p: float

    @property
    def passed(self) -> bool:
        """Whether a right sampler could well have given this result."""
        return self.p >= SMALLEST_P


def check_samplers(draws: int, entropy: Entropy | None = None) -> Iterator[SamplerTest]:
    """Test the noise of rows and of single values at every rate, and all responses."""
    source = SecureEntropy() if entropy is None else entropy
    for rate in RATES:
        yield from check_rate(rate, _rows(rate, draws, source))
    for rate in RATES[2::4]:
        yield from check_rate(rate, _singles(rate, draws // 20, source), "single ")
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(7, 3)):
        yield check_flips(epsilon, draws, source)
        yield check_responses(epsilon, draws, source)
    for epsilon in (Fraction(1, 2), Fraction(5)):
        yield check_centre(epsilon, max(draws // 40, 200), source)


def check_rate(rate: Fraction, noise: Integers, kind: str = "") -> list[SamplerTest]:
    """Test odd half steps that should be two-sided geometric noise of the given rate."""
    negative = noise < 0
    sizes = np.array((np.abs(noise) - 1) // 2, dtype=np.int64)
    if not np.all(noise % 2 == 1):
        return [SamplerTest(f"{kind}Laplace {rate}: odd half steps", 0.0)]
    name = f"{kind}Laplace at rate {rate}: "
    return [
        SamplerTest(name + "chi-square", _chi_square(sizes, float(rate))),
        SamplerTest(name + "binary digits", _digits(sizes, rate)),
        SamplerTest(name + "signs", _binomial(int(negative.sum()), negative.size, 0.5)),
        SamplerTest(name + "signs against sizes", _association(negative, sizes)),
        SamplerTest(name + "neighbouring draws", _lag(sizes, 1)),
        SamplerTest(name + "draws 64 apart", _lag(sizes, 64)),
    ]


def check_flips(epsilon: Fraction, draws: int, entropy: Entropy) -> SamplerTest:
    """Test how often randomised response flips a bit."""
    bits = np.zeros(draws, dtype=np.bool_)
    flipped = Noise(entropy).randomized_response("audit", bits, epsilon=epsilon)
    expected = 1 / (1 + math.exp(float(epsilon)))
    return SamplerTest(
        f"randomised response at ε = {epsilon}: flips",
        _binomial(int(flipped.sum()), draws, expected),
    )


def check_responses(epsilon: Fraction, draws: int, entropy: Entropy, arms: int = 4) -> SamplerTest:
    """Test how often generalised response answers each arm."""
    codes = np.ones(draws, dtype=np.uint8)
    answers = Noise(entropy).generalized_response("audit", codes, arms=arms, epsilon=epsilon)
    weights = np.where(np.arange(arms) == 1, math.exp(float(epsilon)), 1.0)
    expected = draws * weights / weights.sum()
    name = f"generalised response of {arms} arms at ε = {epsilon}: answers"
    return SamplerTest(name, _fit(np.bincount(answers, minlength=arms), expected))


def check_centre(epsilon: Fraction, draws: int, entropy: Entropy) -> SamplerTest:
    """Test how often each candidate near a trimmed mean is released."""
    values = np.arange(-20, 21, dtype=np.int64) ** 3 // 200
    rule = CentreRule(np.arange(-20, 21, dtype=np.int64), 40, 3)
    noise = Noise(entropy)
    drawn = [
        noise.trimmed_centre("audit", values, rule=rule, changes=2, epsilon=epsilon)
        for _ in range(draws)
    ]
    weights = np.exp(-float(epsilon) / 4 * rule.levels(values))
    expected = draws * weights / weights.sum()
    observed = np.bincount(np.array(drawn) + 20, minlength=expected.size)
    rare = expected < 5
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    observed = np.append(observed[~rare], observed[rare].sum())
    name = f"trimmed centre at ε = {epsilon}: candidates"
    return SamplerTest(name, _fit(observed, expected))


def _rows(rate: Fraction, draws: int, entropy: Entropy) -> Integers:
    zeros = np.zeros(draws, dtype=np.int64)
    noisy = Noise(entropy).laplace_rows(
        "audit", zeros, sensitivity=rate.denominator, epsilon=Fraction(rate.numerator)
    )
    return noisy.astype(np.int64)


def _singles(rate: Fraction, draws: int, entropy: Entropy) -> Integers:
    noisy = Noise(entropy).laplace(
        "audit", [0] * draws, sensitivity=rate.denominator, epsilon=Fraction(rate.numerator)
    )
    return np.array(noisy, dtype=np.int64)


def _chi_square(sizes: Integers, rate: float) -> float:
    """Compare counts in about fifty cells of equal probability with what they should be."""
    shares = np.arange(1, 50) / 50
    edges = np.unique(np.ceil(-np.log1p(-shares) / rate).astype(np.int64))
    edges = edges[edges > 0]
    survival = np.concatenate(([1.0], np.exp(-rate * edges), [0.0]))
    expected = -np.diff(survival) * sizes.size
    observed = np.bincount(np.searchsorted(edges, sizes, "right"), minlength=expected.size)
    return _fit(observed, expected)


def _fit(observed: Integers, expected: Floats) -> float:
    """Return the p-value of Pearson's χ² of counts."""
    from scipy.stats import chi2

    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1))


def _digits(sizes: Integers, rate: Fraction) -> float:
    """Compare how often each binary digit is one with 1/(1 + exp(2ʲ rate))."""
    from scipy.stats import chi2

    total, used = 0.0, 0
    for digit in range(60):
        share = 1 / (1 + math.exp(min(float(rate) * 2.0**digit, 700.0)))
        if share * sizes.size < 30:
            break
        ones = int(((sizes >> digit) & 1).sum())
        total += (ones - share * sizes.size) ** 2 / (sizes.size * share * (1 - share))
        used += 1
    return float(chi2.sf(total, used)) if used else 1.0


def _binomial(hits: int, size: int, share: float) -> float:
    from scipy.stats import binomtest

    return float(binomtest(hits, size, share).pvalue)


def _association(negative: npt.NDArray[np.bool_], sizes: Integers) -> float:
    """Compare the share of negative signs among small and among large draws."""
    from scipy.stats import norm

    large = sizes > np.median(sizes)
    counts = [int(np.count_nonzero(large)), int(np.count_nonzero(~large))]
    if min(counts) < 30:
        return 1.0
    gap = negative[large].mean() - negative[~large].mean()
    return float(2 * norm.sf(abs(gap) / math.sqrt(0.25 * (1 / counts[0] + 1 / counts[1]))))


def _lag(sizes: Integers, lag: int) -> float:
    """Compare the correlation of draws some places apart with zero."""
    from scipy.stats import norm

    centred = np.minimum(sizes, np.quantile(sizes, 0.99)).astype(np.float64)
    centred -= centred.mean()
    spread = float(centred @ centred)
    if spread == 0:
        return 1.0
    correlation = float(centred[lag:] @ centred[:-lag]) / spread
    return float(2 * norm.sf(abs(correlation) * math.sqrt(sizes.size)))
