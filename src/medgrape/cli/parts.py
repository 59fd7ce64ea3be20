"""``medgrape parts``: what a model and a data set can be made of here, from medgrape and from other packages."""

from typing import Annotated, Any

import typer

from medgrape.cli.console import note, print_json, table
from medgrape.cli.options import Json
from medgrape.errors import UserError
from medgrape.plugins import KINDS, Kind, OwnPart, built_in, offered

MEDGRAPE = "medgrape"
_SIDE = 224


def parts(
    check: Annotated[
        bool, typer.Option("--check", help="Also import every part of another package and try it out.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Data sources, backbones, text encoders and heads that are installed, and the package each comes from.

    With --check, exit code 1 where one does not keep to its contract.

    Example: medgrape parts --check
    """
    found = [row for kind in KINDS for row in _rows(kind, check=check)]
    if as_json:
        print_json({"parts": found})
    else:
        _print(found, check=check)
    if check and any(row["problem"] for row in found):
        raise typer.Exit(1)


def _rows(kind: Kind, *, check: bool) -> list[dict[str, Any]]:
    usable, refused = offered(kind)
    own = [(part, _problem(part) if check else "") for part in usable]
    own += [(one.part, one.reason) for one in refused]
    rows = [{"kind": kind, "name": name, "from": MEDGRAPE, "version": None, "problem": ""} for name in built_in(kind)]
    return rows + [
        {"kind": kind, "name": part.name, "from": part.distribution, "version": part.version, "problem": problem}
        for part, problem in own
    ]


def _problem(part: OwnPart) -> str:
    """Of one part, whatever it is; the others are tried all the same."""
    try:
        with part.answering("fails"):
            _try(part)
    except UserError as error:
        return str(error)
    except SystemExit:
        return str(part.refuse("ends the program that tries it"))
    return ""


def _try(part: OwnPart) -> None:
    """As a training would, with sizes that a training might have; a source needs films, and is imported only."""
    if part.kind == "source":
        part.load()
    elif part.kind == "backbone":
        from medgrape.config import BackboneSettings  # torch is slow to import
        from medgrape.model.backbones import build_backbone

        build_backbone(BackboneSettings(name=part.name, pretrained=False)).grid(_SIDE)
    elif part.kind == "text encoder":
        from medgrape.vocabulary.encoders.base import PluginEncoder

        PluginEncoder(part)
    else:
        from medgrape.model.heads.base import PluginHead

        PluginHead(part, concepts=3, prototypes=4, classes=2, dropout=0.1)


def _print(found: list[dict[str, Any]], *, check: bool) -> None:
    rows = [(row["kind"], row["name"], " ".join(filter(None, (row["from"], row["version"])))) for row in found]
    table("Parts", ("kind", "name", "from"), rows)
    own = [row for row in found if row["from"] != MEDGRAPE]
    for row in own:
        if row["problem"]:
            note(f"problem: {row['problem']}")
    if not own:
        note("No other package brings parts along; docs/how-to/own-parts.md tells how one does.")
    elif check and not any(row["problem"] for row in own):
        note("Every part of another package keeps to its contract.")
