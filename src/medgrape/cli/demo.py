"""``medgrape demo``: everything there is, on drawn films, with one command."""

import os
from pathlib import Path
from typing import Annotated

import typer

from medgrape.cli.console import note, track
from medgrape.cli.data import run_check
from medgrape.config import Config
from medgrape.data.dataset import Dataset
from medgrape.data.sources.phantom import PhantomOrder, draw_dataset
from medgrape.data.splits import SplitRule

FILMS, QUICK_FILMS = 1200, 120


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything that the demo makes.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other patients.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test with few films.")] = False,
) -> None:
    """Draw chest films, check them and report what is in them.

    Example: medgrape demo
    """
    films = QUICK_FILMS if quick else FILMS
    folder = out / f"tb-{films}-seed{seed}"
    if (folder / "dataset.toml").is_file():
        note(f"{folder} is there already and is used as it is.")
        Dataset.load(folder)
    else:
        rule = SplitRule(test=0.2, seed=seed)
        draw_dataset(PhantomOrder(films=films, seed=seed), folder, rule, workers=os.cpu_count() or 1, track=track)
    run_check(folder, Config())
    note("These films are drawn; no patient was ever in front of them. Look at the contact sheet first.")
