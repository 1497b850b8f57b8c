"""Calibrated weights for three arms or more, each arm with a design of its own."""
