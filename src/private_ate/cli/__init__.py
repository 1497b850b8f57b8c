"""The command line: one file per command, which parses, calls one function and prints.

Flags come from `private_ate.parameters` by `flags`. Alone: how a command prints. Together: a
command with `app`, which lists it; a flag with the table of parameters; an exit code with
`app.EXIT_CODES`. Nothing heavy is imported before a command runs: --help stays fast.
"""

__all__ = ["main"]


def main() -> None:
    """Run the program; the commands are loaded only when it runs."""
    from private_ate.cli.app import main as run  # importing the package stays free

    run()
