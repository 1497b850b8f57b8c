"""What other processes run: at home in a module that a spawned interpreter can import."""

from fractions import Fraction

from private_ate.privacy.entropy import SecureEntropy
from private_ate.privacy.noise import Noise


def draw_some(_: object = None) -> tuple[int, ...]:
    """Draw secure noise."""
    noise = Noise(SecureEntropy())
    return tuple(noise.laplace("t", [0] * 6, sensitivity=1 << 40, epsilon=Fraction(1)))
