"""The ``medgrape`` command."""


def main() -> None:
    """Run the ``medgrape`` command."""
    from medgrape.cli.app import main as run  # not imported above, as workers of the server import this module, too

    run()
