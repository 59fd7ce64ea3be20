"""The ``medgrape`` command."""


def main() -> None:
    """What it runs. Nothing is imported before: a server's workers import this module, too, and never call it."""
    from medgrape.cli.app import main as run

    run()
