"""``medgrape parts``: list and try the parts of medgrape and of other installed packages."""

from typing import Annotated, Any

from typer import Exit, Option

from medgrape.cli.console import note, print_result, table
from medgrape.cli.options import Json
from medgrape.errors import UserError
from medgrape.plugins import KINDS, Kind, Plugin, built_in, offered

_MEDGRAPE = "medgrape"


def parts(
    check: Annotated[
        bool, Option("--check", help="Try every part of another package; exit code 1 if one fails.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the installed data sources, backbones, text encoders and heads, and the package of each.

    Example: medgrape parts --check
    """
    rows = [row for kind in KINDS for row in _rows(kind, check=check)]
    print_result({"parts": rows}, lambda _: _print(rows, check=check), as_json=as_json)
    if check and any(row["problem"] for row in rows):
        raise Exit(1)


def _rows(kind: Kind, *, check: bool) -> list[dict[str, Any]]:
    usable, refused = offered(kind)
    plugins = [(part, _find_problem(part) if check else "") for part in usable]
    plugins += [(refusal.part, refusal.reason) for refusal in refused]
    rows = [{"kind": kind, "name": name, "from": _MEDGRAPE, "version": None, "problem": ""} for name in built_in(kind)]
    return rows + [
        {"kind": kind, "name": part.name, "from": part.distribution, "version": part.version, "problem": problem}
        for part, problem in plugins
    ]


def _find_problem(part: Plugin) -> str:
    """Try a part; return the error message, or an empty string."""
    try:
        with part.answering("fails"):
            _try(part)
    except UserError as error:
        return str(error)
    except SystemExit:
        return str(part.refuse("ends the program that tries it"))
    return ""


def _try(part: Plugin) -> None:
    """Build the part as a training would; a data source, which needs films, is only imported."""
    if part.kind == "source":
        part.load()
    elif part.kind == "backbone":
        from medgrape.config import BackboneSettings  # torch is slow to import
        from medgrape.model.backbones import build_backbone

        build_backbone(BackboneSettings(name=part.name, pretrained=False)).grid(224)
    elif part.kind == "text encoder":
        from medgrape.vocabulary.encoders.base import PluginEncoder

        PluginEncoder(part)
    else:
        from medgrape.model.heads.base import PluginHead

        PluginHead(part, concepts=3, prototypes=4, classes=2, dropout=0.1)


def _print(rows: list[dict[str, Any]], *, check: bool) -> None:
    cells = [(row["kind"], row["name"], " ".join(filter(None, (row["from"], row["version"])))) for row in rows]
    table("Parts", ("kind", "name", "package"), cells)
    plugins = [row for row in rows if row["from"] != _MEDGRAPE]
    problems = [row["problem"] for row in plugins if row["problem"]]
    for problem in problems:
        note(f"problem: {problem}")
    if not plugins:
        note("No other installed package offers parts; docs/how-to/own-parts.md explains how a package does.")
    elif check and not problems:
        note("All parts of other packages work.")
