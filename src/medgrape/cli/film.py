"""``medgrape film``: describe film files."""

from pathlib import Path
from typing import Annotated, Any

from PIL import Image
from typer import Argument, Exit, Option

from medgrape.cli.console import note, out, print_error, print_json, printable
from medgrape.cli.options import ConfigFile, Json, MaxBytes, MaxPixels, MaxRatio, Size, config_with
from medgrape.config import Config
from medgrape.errors import UserError
from medgrape.files import whole_file
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import FilmError, FilmFacts


def film(
    files: Annotated[list[Path], Argument(help="PNG, JPEG or DICOM files.")],
    save: Annotated[Path | None, Option(help="Save what the model sees: a .png file, or a folder for several.")] = None,
    as_json: Json = False,
    config: ConfigFile = None,
    size: Size = None,
    max_bytes: MaxBytes = None,
    max_pixels: MaxPixels = None,
    max_ratio: MaxRatio = None,
) -> None:
    """Describe films: format, size, view, and the steps that prepare them for the model; or why they are refused.

    Exit code 2 if a film is refused.

    Example: medgrape film chest.dcm --save input.png
    """
    settings = config_with(config, size, max_bytes=max_bytes, max_pixels=max_pixels, max_ratio=max_ratio)
    targets = _targets(files, save)
    with Decoder() as decoder:
        entries = [
            _describe(decoder, file, target, settings, quiet=as_json)
            for file, target in zip(files, targets, strict=True)
        ]
    if as_json:
        print_json(entries)
    if any("refused" in entry for entry in entries):
        raise Exit(2)


def _targets(files: list[Path], save: Path | None) -> list[Path | None]:
    """Return the path of each film's picture; None if it is not saved."""
    if save is None:
        return [None] * len(files)
    single = save.suffix.lower() == ".png" and not save.is_dir()
    if single and len(files) > 1:
        raise UserError("--save takes a folder when there are several films.")
    if save.suffix and not single and not save.is_dir():
        raise UserError(f"--save takes a .png file or a folder, not {save}.")
    targets = [save] if single else [save / f"{file.stem}.png" for file in files]
    if len(set(targets)) < len(targets):
        raise UserError("Two of the films have the same name; save them one by one.")
    originals = {file.resolve() for file in files}
    for target in targets:
        if target.resolve() in originals:
            raise UserError(f"--save would overwrite the film {target} itself; choose another place.")
    return list(targets)


def _describe(decoder: Decoder, file: Path, target: Path | None, settings: Config, *, quiet: bool) -> dict[str, Any]:
    """Read, save and print one film; return its entry in the JSON output."""
    try:
        film = decoder.read(Request(file, settings.limits, settings.preprocessing))
    except FilmError as refusal:
        if not quiet:
            print_error(str(refusal))
        return {"path": file, "refused": str(refusal)}
    if target is not None:
        with whole_file(target) as draft:
            Image.fromarray(film.pixels).save(draft, "PNG")
    if not quiet:
        _print_facts(file, film.facts)
        if target is not None:
            note(f"  input of the model: {target}")
    return {"path": file, "saved": target, **film.facts.to_json()}


def _print_facts(file: Path, facts: FilmFacts) -> None:
    out.print(printable(str(file)), style="bold", markup=False, soft_wrap=True)
    lines = {
        "format": facts.format,
        "size": f"{facts.size} pixels",
        "bits": facts.bits,
        "photometric": facts.photometric,
        "transfer syntax": facts.transfer_syntax,
        "modality": facts.modality,
        "view": facts.view,
        "laterality": facts.laterality,
        "pixel spacing": None if facts.spacing is None else f"{facts.spacing[0]:g} x {facts.spacing[1]:g} mm",
        "applied": "; ".join(facts.applied) or "nothing",
    }
    for name, value in lines.items():
        note(f"  {name:<16} {'unknown' if value is None else value}")
    for warning in facts.warnings:
        out.print(f"  warning          {printable(warning)}", style="yellow", markup=False, soft_wrap=True)
