"""The command line is built once in a process, however many tests call a command of it.

typer derives all commands from their functions' annotations whenever one is called, which takes
longer than most commands do. A program that people start does that once.
"""

from functools import lru_cache

import typer.main
import typer.testing

typer.main.get_command = typer.testing._get_command = lru_cache(typer.main.get_command)
