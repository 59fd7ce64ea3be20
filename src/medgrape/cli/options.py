"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from medgrape.cli.console import print_error, track
from medgrape.concepts import EVERY_CONCEPT
from medgrape.config import MAX_SEED, Config, load_config
from medgrape.errors import UserError
from medgrape.geometry import Box

_CONFIG = "Settings file, as for medgrape train; only limits and preprocessing are used."
ConfigFile = Annotated[Path | None, Option(help=_CONFIG)]
Json = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]
Size = Annotated[int | None, Option(help="Side of the model's square input, in pixels. (default: 224)")]
MaxBytes = Annotated[int | None, Option(help="Largest file to open, in bytes. (default: 268435456)")]
MaxPixels = Annotated[int | None, Option(help="Largest width times height. (default: 64000000)")]
MaxRatio = Annotated[float | None, Option(help="Largest ratio of unpacked to packed size of a file. (default: 500)")]
EngineName = Annotated[Literal["local", "ray"], Option("--engine", help="Run on this machine, or on a Ray cluster.")]
Address = Annotated[str | None, Option(help="Ray cluster, such as 10.0.0.7:6379. (default: start one here)")]


def resolve_run(run: Path) -> Path:
    """Return the path; for a run on a model hub, download it and return its local folder."""
    if run.exists():
        return run
    from medgrape.runs.hub.download import fetch_run, hub_name

    wanted = hub_name(run)
    if wanted is None:
        return run
    folder = fetch_run(wanted, track=track)
    if not wanted.pinned:
        print_error(wanted.notice(folder.name))
    return folder


_RUN = "Folder of a run, or ORG/NAME@REVISION on a model hub."
RunArgument = Annotated[Path, Argument(help=_RUN, callback=resolve_run)]
RunOption = Annotated[Path, Option("--model", help=_RUN, callback=resolve_run)]
_MODEL = "Folder of a run, an exported .onnx file, or ORG/NAME@REVISION on a model hub."
ModelArgument = Annotated[Path, Argument(help=_MODEL, callback=resolve_run)]
ModelOption = Annotated[Path, Option("--model", help=_MODEL, callback=resolve_run)]


def check_address(engine: str, address: str | None) -> None:
    """Raise an error if the address of a cluster is given but not used."""
    if address is not None and engine != "ray":
        raise UserError("--address names a Ray cluster; add --engine ray.")


def outside_runs(path: Path) -> Path:
    """Return the path; raise an error if it lies in a run, which would not load with another file in it."""
    from medgrape.runs.manifest import refuse_inside_run

    refuse_inside_run(path)
    return path


def check_picture_path(path: Path) -> None:
    """Raise an error if no picture can be written to the path."""
    if path.suffix.lower() != ".png":
        raise UserError(f"--save takes a .png file, not {path}.")
    outside_runs(path)


def config_with(file: Path | None, size: int | None = None, **limits: float | None) -> Config:
    """Load the settings of a file and override size and limits with the options that are not None."""
    config = load_config(file)
    preprocessing = config.preprocessing.overridden(size=size)
    return config.model_copy(update={"limits": config.limits.overridden(**limits), "preprocessing": preprocessing})


def parse_box(option: str, text: str) -> tuple[str | None, Box]:
    """Parse ``active_tb:310,120,420,260``; the concept is None for ``all``."""
    concept, _, corners = text.partition(":")
    try:
        x1, y1, x2, y2 = (float(corner) for corner in corners.split(","))
    except ValueError:
        concept = ""
    if not concept:
        raise UserError(f"{option} takes CONCEPT:x1,y1,x2,y2, as in active_tb:310,120,420,260; not {text!r}.")
    return parse_concept(concept), Box(x1, y1, x2, y2)


def parse_concept(text: str) -> str | None:
    """Return the name of the concept, or None for ``all``."""
    return None if text == EVERY_CONCEPT else text


def parse_numbers(option: str, text: str) -> tuple[int, ...]:
    """Parse whole numbers separated by commas; repeated ones count once."""
    try:
        numbers = tuple(dict.fromkeys(int(number) for number in text.split(",")))
    except ValueError:
        numbers = (-1,)
    if any(not 0 <= number <= MAX_SEED for number in numbers):
        raise UserError(f"{option} takes whole numbers with commas, such as 0,1,5, up to {MAX_SEED}; not {text!r}.")
    return numbers
