"""Lets ``python -m private_ate`` do what ``private-ate`` does."""

from private_ate.cli import main

if __name__ == "__main__":
    main()
