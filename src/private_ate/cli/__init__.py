"""The command line: parse, call one function, print."""

from private_ate.cli.app import main

__all__ = ["main"]
