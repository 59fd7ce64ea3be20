"""``medgrape pacs watch``: films read as they arrive."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import note
from medgrape.cli.options import Json, outside_runs
from medgrape.cli.pacs import SINCE, ServerName, Servers, configured
from medgrape.explain.words import NOTICE

if TYPE_CHECKING:  # slow to import
    from medgrape.interchange.pacs.news import News


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
    from medgrape.interchange.pacs.watch import WatchOrder
    from medgrape.interchange.pacs.watch import watch as watch_server

    tell = _tell_programs if as_json else _tell_people
    order = WatchOrder(configuration, model, outside_runs(out), since, push, dicom, every, once)
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


def _tell_people(news: "News") -> None:
    note(": ".join(part for part in (news.what, news.film, news.words) if part))


def _tell_programs(news: "News") -> None:
    _say(news.to_json())


def _say(told: object) -> None:
    """A line of JSON, at once: whoever reads along waits for it."""
    sys.stdout.write(json.dumps(told, allow_nan=False) + "\n")
    sys.stdout.flush()
