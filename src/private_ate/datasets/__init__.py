"""Data sets, each with its declared domain."""
