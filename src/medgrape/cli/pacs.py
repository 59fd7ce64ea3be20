"""``medgrape pacs``: list, fetch, store and watch films on a DICOMweb server."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option, Typer

from medgrape.cli.console import note, print_json, table, track
from medgrape.cli.options import Json, outside_runs
from medgrape.errors import UserError
from medgrape.explain.words import NOTICE

if TYPE_CHECKING:
    from medgrape.hospital.pacs.connection import Connection
    from medgrape.hospital.pacs.servers import Server
    from medgrape.hospital.pacs.transfer import StoreResult
    from medgrape.hospital.pacs.watch import WatchEvent

app = Typer(no_args_is_help=True, help="Fetch films from a PACS and store readings in it (DICOMweb).")
ServerName = Annotated[str, Argument(metavar="SERVER", help="Name of a server in pacs.toml, not an address.")]
Servers = Annotated[Path | None, Option(help="TOML file with the servers. (default: $MEDGRAPE_PACS, else pacs.toml)")]
Modalities = Annotated[list[str] | None, Option(help="Modality of the images; repeatable. (default: CR, DX)")]
_SINCE = "2026-11-18, today, 7d for the last 7 days, or always"


@app.command("list")
def list_studies(
    server: ServerName,
    since: Annotated[str, Option(help=f"First study date: {_SINCE}.")] = "7d",
    modality: Modalities = None,
    limit: Annotated[int, Option(min=1, help="Largest number of studies to list.")] = 500,
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """List studies with chest films: UID, date, modalities, accession number, number of images; no patient names.

    Example: medgrape pacs list hospital --since today
    """
    with _connect(server, servers) as connection:
        from medgrape.hospital.pacs.query import CHEST_MODALITIES, SeriesFilter, parse_since
        from medgrape.hospital.pacs.query import list_studies as query_studies

        wanted = SeriesFilter(parse_since(since), tuple(modality or CHEST_MODALITIES))
        studies, more = query_studies(connection, wanted, limit)
    if as_json:
        print_json({"server": server, "studies": studies, "more": more})
        return
    rows = [(s.uid, s.date, ", ".join(s.modalities), s.accession, s.images) for s in studies]
    table(f"{server}: {len(studies):,} studies", ("study", "date", "modalities", "accession", "images"), rows)
    if more:
        note("There are more: raise --limit, or give a later --since.")


@app.command()
def pull(
    server: ServerName,
    study: Annotated[list[str] | None, Argument(help="UIDs of studies, as medgrape pacs list shows them.")] = None,
    out: Annotated[Path, Option(help="Folder for the films; existing ones are not fetched again.")] = Path("films"),
    since: Annotated[str | None, Option(help=f"Fetch all studies since this date instead: {_SINCE}.")] = None,
    modality: Modalities = None,
    clean: Annotated[bool, Option("--clean", help="Store copies without data that identify patients.")] = False,
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """Fetch films into a folder; run it again to continue. Exit code 1 if a film is refused.

    Example: medgrape pacs pull hospital --since today --clean --out films
    """
    if bool(study) == bool(since):
        raise UserError("Give either UIDs of studies, as medgrape pacs list shows them, or --since.")
    with _connect(server, servers) as connection:
        from medgrape.hospital.pacs.query import CHEST_MODALITIES, SeriesFilter, parse_since, parse_study_uid
        from medgrape.hospital.pacs.transfer import PullOptions, pull

        uids = tuple(parse_study_uid(uid) for uid in study or ())
        wanted = SeriesFilter(parse_since(since) if since else None, tuple(modality or CHEST_MODALITIES))
        pulled = pull(connection, PullOptions(outside_runs(out), uids, wanted, clean), track)
    if as_json:
        print_json({"out": out, **pulled.to_json()})
    else:
        for refusal in pulled.refused:
            note(f"refused: {refusal['film']}: {refusal['reason']}")
        note(f"{out}: {pulled.fetched:,} fetched, {pulled.there:,} existed before, {len(pulled.refused):,} refused")
    if pulled.refused:
        raise Exit(1)


@app.command()
def push(
    server: ServerName,
    files: Annotated[list[Path], Argument(help="DICOM files, or folders with DICOM files.")],
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """Store DICOM files on a server; storing one twice has no effect. Exit code 1 if the server refuses one.

    Example: medgrape pacs push hospital report.dcm maps.dcm
    """
    with _connect(server, servers) as connection:
        from medgrape.hospital.pacs.transfer import dicom_files, store

        results: list[StoreResult] = []
        paths = dicom_files(files)
        try:  # after an error, too, the files sent before are listed
            for path in paths:
                result = store(connection, path)
                results.append(result)
                if not as_json:
                    note(f"accepted: {path}" if result.accepted else f"refused: {path}: {result.reason}")
        finally:
            if as_json:
                print_json({"server": server, "files": results})
    if not all(result.accepted for result in results):
        raise Exit(1)


@app.command()
def watch(
    server: ServerName,
    model: Annotated[Path, Option(help="Folder of a run, or an exported .onnx file.")],
    out: Annotated[Path, Option(help="Folder for the readings and the record of all films.")],
    since: Annotated[str, Option(help=f"First study date: {_SINCE}.")] = "7d",
    push: Annotated[bool, Option("--push", help="Store report, maps and boxes of each film on the server.")] = False,
    dicom: Annotated[bool, Option("--dicom", help="Keep these files in OUT; they name the patient.")] = False,
    every: Annotated[float, Option(min=0.1, help="Seconds between two queries.")] = 30.0,
    once: Annotated[bool, Option("--once", help="Stop after one query; exit code 1 if films are left.")] = False,
    servers: Servers = None,
    as_json: Json = False,
) -> None:
    """Read new CR and DX chest films as they arrive, each exactly once, also across crashes and restarts.

    Example: medgrape pacs watch hospital --model runs/demo --out readings --push
    """
    configuration = _find_server(server, servers)
    from medgrape.hospital.pacs.watch import WatchOptions
    from medgrape.hospital.pacs.watch import watch as watch_server

    order = WatchOptions(configuration, model, outside_runs(out), since, push, dicom, every, once)
    try:
        counts = watch_server(order, (lambda news: _print_line(news.to_json())) if as_json else _print_news)
    except KeyboardInterrupt:  # the usual end
        if once:
            raise
        if not as_json:
            note("Stopped; run the same command to continue.")
        return
    left = counts.get("waiting", 0) + (counts.get("unsent", 0) if push else 0)
    if as_json:
        _print_line({"what": "done", "films": counts, "notice": NOTICE})
    else:
        summary = ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items())) or "no films yet"
        note(f"{out}: {summary}")
        note(NOTICE)
    if left:
        raise Exit(1)


def _print_news(news: "WatchEvent") -> None:
    note(": ".join(part for part in (news.kind, news.film, news.message) if part))


def _print_line(data: object) -> None:
    """Print a line of JSON at once, as other programs may wait for it."""
    sys.stdout.write(json.dumps(data, allow_nan=False) + "\n")
    sys.stdout.flush()


def _connect(name: str, file: Path | None) -> "Connection":
    server = _find_server(name, file)
    from medgrape.hospital.pacs.connection import Connection

    return Connection(server)


def _find_server(name: str, file: Path | None) -> "Server":
    """Return the server of that name; if packages are missing, the error says what to install."""
    try:
        import httpx2  # noqa: F401
        import pydicom  # noqa: F401
    except ModuleNotFoundError as missing:
        raise UserError("A PACS needs: pip install 'medgrape[pacs]'.") from missing
    from medgrape.hospital.pacs.servers import configured_server

    return configured_server(name, file)
