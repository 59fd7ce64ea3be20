"""``medgrape pacs watch``: films read as they arrive."""

import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json, outside_runs
from medgrape.errors import UserError
from medgrape.explain.words import NOTICE

if TYPE_CHECKING:
    from medgrape.hospital.pacs.connection import Connection
    from medgrape.hospital.pacs.servers import Server
    from medgrape.hospital.pacs.transfer import StoreResult
    from medgrape.hospital.pacs.watch import WatchEvent

app = typer.Typer(
    no_args_is_help=True, help="Films from a PACS, and readings back into it (DICOMweb), with configured servers only."
)
ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="Its name in pacs.toml; addresses are not taken.")]
Servers = Annotated[
    Path | None, typer.Option(help="TOML file that names servers. [default: $MEDGRAPE_PACS, else pacs.toml]")
]
Modalities = Annotated[
    list[str] | None, typer.Option("--modality", help="Which kinds of image; may be given again. [default: CR, DX]")
]
SINCE = "2026-11-18, today, 7d for so many days back, or always"


@app.command("list")
def list_studies(
    server: ServerName,
    since: Annotated[str, typer.Option(help=f"First study date: {SINCE}.")] = "7d",
    modality: Modalities = None,
    limit: Annotated[int, typer.Option(min=1, help="Most studies to list.")] = 500,
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """List studies with chest films: date, modalities, accession number, images and UID, and no patient's name.

    Example: medgrape pacs list hospital --since today
    """
    with _connected(server, servers) as connection:
        from medgrape.hospital.pacs.query import SeriesFilter, parse_since
        from medgrape.hospital.pacs.query import list_studies as listed

        wanted = SeriesFilter(parse_since(since), _modalities(modality))
        shown, more = listed(connection, wanted, limit)
    if as_json:
        print_json({"server": server, "studies": [one.to_json() for one in shown], "more": more})
        return
    rows = [(one.uid, one.date, ", ".join(one.modalities), one.accession, _count(one.images)) for one in shown]
    table(f"{server}: {len(shown):,} studies", ("study", "date", "modalities", "accession", "images"), rows)
    if more:
        note("and more: raise --limit, or ask for later ones with --since")


@app.command()
def pull(
    server: ServerName,
    study: Annotated[list[str] | None, typer.Argument(help="UIDs of studies, as pacs list shows them.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the films; those that are there are not fetched again.")] = Path(
        "films"
    ),
    since: Annotated[str | None, typer.Option(help=f"Instead of UIDs, all since: {SINCE}.")] = None,
    modality: Modalities = None,
    clean: Annotated[bool, typer.Option("--clean", help="Keep copies without anything that names a patient.")] = False,
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """Fetch films into a folder, each whole or not there; given again, it goes on. Exit code 1 if one is refused.

    Example: medgrape pacs pull hospital --since today --clean --out films
    """
    if bool(study) == bool(since):
        raise UserError("Name studies by their UIDs, or all of them by --since; pacs list shows both.")
    with _connected(server, servers) as connection:
        from medgrape.hospital.pacs.query import SeriesFilter, parse_since, parse_study_uid
        from medgrape.hospital.pacs.transfer import PullOptions, pull

        uids = tuple(parse_study_uid(one) for one in study or ())
        wanted = SeriesFilter(parse_since(since) if since else None, _modalities(modality))
        pulled = pull(connection, PullOptions(outside_runs(out), uids, wanted, clean), track)
    if as_json:
        print_json({"out": str(out), **pulled.to_json()})
    else:
        for one in pulled.refused:
            note(f"refused: {one['film']}: {one['reason']}")
        note(f"{out}: {pulled.fetched:,} fetched, {pulled.there:,} were there, {len(pulled.refused):,} refused")
    if pulled.refused:
        raise typer.Exit(1)


@app.command()
def push(
    server: ServerName,
    files: Annotated[list[Path], typer.Argument(help="DICOM files, or folders with some.")],
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """Store DICOM files as they are; sending one twice stores it once. Exit code 1 if the server refuses one.

    Example: medgrape pacs push hospital report.dcm maps.dcm
    """
    with _connected(server, servers) as connection:
        from medgrape.hospital.pacs.transfer import StoreResult, dicom_files, store

        paths, stored = dicom_files(files), list[StoreResult]()
        try:  # whatever ends it, what was sent until then is told
            for path in paths:
                stored.append(store(connection, path))
                if not as_json:
                    _tell_stored(stored[-1])
        finally:
            if as_json:
                print_json({"server": server, "files": [one.to_json() for one in stored]})
    if not all(one.accepted for one in stored):
        raise typer.Exit(1)


def _tell_stored(one: "StoreResult") -> None:
    note(f"accepted: {one.path}" if one.accepted else f"refused: {one.path}: {one.reason}")


def _connected(name: str, file: Path | None) -> "AbstractContextManager[Connection]":
    server = configured(name, file)
    from medgrape.hospital.pacs.connection import Connection

    return Connection(server)


def configured(name: str, file: Path | None) -> "Server":
    """The server of that name, or a sentence that says what is missing."""
    try:
        import httpx2  # noqa: F401
        import pydicom  # noqa: F401
    except ModuleNotFoundError as missing:
        raise UserError("A PACS needs: pip install 'medgrape[pacs]'.") from missing
    from medgrape.hospital.pacs.servers import configured_server

    return configured_server(name, file)


def _modalities(given: list[str] | None) -> tuple[str, ...]:
    from medgrape.hospital.pacs.query import CHEST_MODALITIES

    return tuple(given) if given else CHEST_MODALITIES


def _count(images: int | None) -> str:
    return "?" if images is None else f"{images:,}"


def watch(
    server: ServerName,
    model: Annotated[Path, typer.Option(help="A run, as medgrape train leaves it, or a model in one file.")],
    out: Annotated[Path, typer.Option(help="Folder for readings, and for what is known of each film.")],
    since: Annotated[str, typer.Option(help=f"First study date to look at: {SINCE}.")] = "7d",
    push: Annotated[bool, typer.Option("--push", help="Store report, maps and boxes of each film there.")] = False,
    dicom: Annotated[bool, typer.Option("--dicom", help="Keep them here, with the patient's name in them.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 30.0,
    once: Annotated[bool, typer.Option("--once", help="End after one look; exit code 1 if something is left.")] = False,
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """Read new CR and DX chest films as they arrive, each exactly once, whatever is killed or restarted in between.

    Example: medgrape pacs watch hospital --model runs/demo --out readings --push
    """
    configuration = configured(server, servers)
    from medgrape.hospital.pacs.watch import WatchOptions
    from medgrape.hospital.pacs.watch import watch as watch_server

    tell = _tell_programs if as_json else _tell_people
    order = WatchOptions(configuration, model, outside_runs(out), since, push, dicom, every, once)
    try:
        counts = watch_server(order, tell)
    except KeyboardInterrupt:  # the way in which an endless watch ends well
        if once:
            raise
        note("Stopped; given again, it goes on.") if not as_json else None
        return
    left = counts.get("waiting", 0) + (counts.get("unsent", 0) if push else 0)
    if as_json:
        _say({"what": "done", "films": counts, "notice": NOTICE})
    else:
        told = ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items())) or "none yet"
        note(f"{out}: {told}")
        note(NOTICE)
    if left:
        raise typer.Exit(1)


def _tell_people(news: "WatchEvent") -> None:
    note(": ".join(part for part in (news.kind, news.film, news.message) if part))


def _tell_programs(news: "WatchEvent") -> None:
    _say(news.to_json())


def _say(told: object) -> None:
    """A line of JSON, at once: whoever reads along waits for it."""
    sys.stdout.write(json.dumps(told, allow_nan=False) + "\n")
    sys.stdout.flush()
