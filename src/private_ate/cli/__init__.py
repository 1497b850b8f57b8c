"""The command line: parse, call one function, print."""

__all__ = ["main"]


def main() -> None:
    """Run the program; the commands are loaded only when it runs."""
    from private_ate.cli.app import main as run  # importing the package stays free

    run()
