"""Run the command line as ``python -m private_ate.cli``."""

from private_ate.cli import main

main()
