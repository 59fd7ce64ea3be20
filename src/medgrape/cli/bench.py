"""``medgrape bench``: speed as ratios against a named alternative in the same run."""

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from medgrape.benchmarks.ratio import Ratio
from medgrape.cli.console import err, print_json, table
from medgrape.cli.options import Json
from medgrape.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Speed, as ratios against a named alternative in the same run.")


@app.callback()
def _group() -> None:
    """Speed, as ratios against a named alternative in the same run."""


@app.command()
def films(
    rounds: Annotated[int, typer.Option(min=3, help="How often each is timed; the median counts.")] = 15,
    as_json: Json = False,
) -> None:
    """Reading films against the bare decoders, and the cache against decoding again.

    Example: medgrape bench films
    """
    try:
        from medgrape.benchmarks.films import bench_films
    except ModuleNotFoundError as missing:
        raise UserError("bench films reads DICOM, which needs: pip install 'medgrape[dicom]'.") from missing
    _report("Films", lambda: bench_films(rounds), as_json=as_json)


@app.command()
def training(
    rounds: Annotated[int, typer.Option(min=1, help="How often each is timed; the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """An epoch of stages 3 and 4 against an epoch that runs the backbone, on the same drawn films.

    Example: medgrape bench training
    """
    from medgrape.benchmarks.training import bench_training  # torch is slow to import

    _report("Training", lambda: bench_training(rounds), as_json=as_json)


@app.command()
def interaction(
    rounds: Annotated[int, typer.Option(min=3, help="How often each is timed; the median counts.")] = 15,
    as_json: Json = False,
) -> None:
    """A correction with its new classes and maps, against opening the film anew.

    Example: medgrape bench interaction
    """
    from medgrape.benchmarks.interaction import bench_interaction  # torch is slow to import

    _report("Interaction", lambda: bench_interaction(rounds), as_json=as_json)


@app.command()
def faithfulness(
    rounds: Annotated[int, typer.Option(min=1, help="How often each is timed; the median counts.")] = 3,
    as_json: Json = False,
) -> None:
    """Insertion and deletion against the PixelFlipping of Quantus, which must be installed for it.

    Example: medgrape bench faithfulness
    """
    from medgrape.benchmarks.faithfulness import bench_faithfulness  # torch is slow to import

    _report("Faithfulness", lambda: bench_faithfulness(rounds), as_json=as_json)


def _report(title: str, timed: Callable[[], Iterable[Ratio]], *, as_json: bool) -> None:
    with err.status("timing"):
        ratios = list(timed())
    if as_json:
        print_json([ratio.to_json() for ratio in ratios])
    else:
        table(title, ("what", "ours", "against", "theirs", "ratio", "target"), [_row(ratio) for ratio in ratios])


def _row(ratio: Ratio) -> tuple[str, ...]:
    unit = "x its cost" if ratio.at_most else "x faster"
    limit = "at most" if ratio.at_most else "at least"
    met = "met" if ratio.met else "missed"
    return (
        ratio.what, f"{ratio.ours * 1e3:.2f} ms", ratio.alternative, f"{ratio.theirs * 1e3:.2f} ms",
        f"{ratio.value:.3g} {unit}", f"{limit} {ratio.target:g} ({met})",
    )  # fmt: skip
