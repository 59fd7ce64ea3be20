"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from medgrape.concepts import EVERY_CONCEPT
from medgrape.config import Config, load_config
from medgrape.errors import UserError
from medgrape.geometry import Box

ConfigFile = Annotated[Path | None, typer.Option("--config", help="Settings in TOML; options given here win over it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Size = Annotated[int | None, typer.Option(help="Side of the square that the model sees, in pixels. [default: 224]")]
MaxBytes = Annotated[int | None, typer.Option(help="Largest file that is opened. [default: 268435456]")]
MaxPixels = Annotated[int | None, typer.Option(help="Largest width times height. [default: 64000000]")]
MaxRatio = Annotated[float | None, typer.Option(help="Most that a file may unpack to, times its size. [default: 500]")]
EngineName = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="The processes of this machine, or a Ray cluster.")
]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster, such as 10.0.0.7:6379. [default: one that is started here]")
]


def found_run(run: Path) -> Path:
    """The same path, or where a run from a model hub lies once it was fetched."""
    if run.exists():
        return run
    from medgrape.cli.console import complain, track
    from medgrape.runs.hub.download import fetch_run, hub_name

    wanted = hub_name(run)
    if wanted is None:
        return run
    folder = fetch_run(wanted, track=track)
    if not wanted.pinned:
        complain(wanted.notice(folder.name))
    return folder


def found_runs(runs: list[Path]) -> list[Path]:
    """Each of them found."""
    return [found_run(run) for run in runs]


_RUN = "A run, as medgrape train leaves it, or ORG/NAME@COMMIT on a model hub."
RunArgument = Annotated[Path, typer.Argument(help=_RUN, callback=found_run)]
RunOption = Annotated[Path, typer.Option("--model", help=_RUN, callback=found_run)]


def refuse_lost_address(engine: str, address: str | None) -> None:
    """An address that nobody would ask."""
    if address is not None and engine != "ray":
        raise UserError("--address names a Ray cluster; add --engine ray.")


def outside_runs(path: Path) -> Path:
    """The same path, unless it lies in a run, which would no longer load with another file in it."""
    from medgrape.runs.manifest import refuse_inside_run

    refuse_inside_run(path)
    return path


def picture_place(path: Path) -> Path:
    """The same path, if a picture can be written there."""
    if path.suffix.lower() != ".png":
        raise UserError(f"--save takes a .png file, not {path}.")
    return outside_runs(path)


def config_with(
    file: Path | None,
    size: int | None = None,
    max_bytes: int | None = None,
    max_pixels: int | None = None,
    max_ratio: float | None = None,
) -> Config:
    """The file's settings with every option that was really given put on top."""
    config = load_config(file)
    limits = config.limits.overridden(max_bytes=max_bytes, max_pixels=max_pixels, max_ratio=max_ratio)
    return config.model_copy(update={"limits": limits, "preprocessing": config.preprocessing.overridden(size=size)})


def boxed(option: str, text: str) -> tuple[str | None, Box]:
    """``active_tb:310,120,420,260`` as a concept and a box; ``all`` is every concept, told as None."""
    concept, colon, corners = text.partition(":")
    try:
        x1, y1, x2, y2 = (float(corner) for corner in corners.split(","))
    except ValueError:
        concept = ""
    if not (concept and colon):
        raise UserError(f"{option} takes CONCEPT:x1,y1,x2,y2, as in active_tb:310,120,420,260; not {text!r}.")
    return one_or_all(concept), Box(x1, y1, x2, y2)


def one_or_all(text: str) -> str | None:
    """A concept's name, or None for ``all``."""
    return None if text == EVERY_CONCEPT else text
