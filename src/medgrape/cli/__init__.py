"""The command line: parse, call one library function, print."""

from medgrape.cli.app import main

__all__ = ["main"]
