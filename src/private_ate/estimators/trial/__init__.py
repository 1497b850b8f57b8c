"""Trials: the probability of treatment is known, so nothing is paid to learn it."""
