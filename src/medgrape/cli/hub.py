"""``medgrape hub``: a run for others, with a model card, on a model hub or in a folder like there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medgrape.cli.console import err, note, print_json
from medgrape.cli.options import Json, RunArgument, outside_runs

if TYPE_CHECKING:
    from medgrape.runs.hub.publish import Packed, Publishing

app = typer.Typer(no_args_is_help=True, help="Runs for others: a model card, a folder as a hub keeps it, a push.")
Licence = Annotated[
    str, typer.Option("--license", help="As hubs spell them, such as apache-2.0 or cc-by-nc-4.0; other: none is named.")
]
Pictures = Annotated[
    bool | None,
    typer.Option(
        "--with-pictures/--without-pictures",
        help="Publish the run's pictures of training films, or take them out. One of both must be said.",
        show_default=False,
    ),
]
Repository = Annotated[str, typer.Argument(help="ORG/NAME on the hub.")]


@app.callback()
def _group() -> None:
    """Runs for others: a model card, a folder as a hub keeps it, a push."""


@app.command()
def card(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="File to write. [default: print it]")] = None,
    repository: Annotated[str, typer.Option("--as", help="ORG/NAME, for how to load it.")] = "",
    licence: Licence = "other",
) -> None:
    """Write the model card of a run, from the run and from the report and audit beside it.

    Example: medgrape hub card runs/demo --out README.md
    """
    from medgrape.files import whole_file
    from medgrape.runs.hub.card import card_of

    if out is not None:
        outside_runs(out)
    text = card_of(run, repository=repository, licence=licence)
    if out is None:
        typer.echo(text, nl=False)
        return
    with whole_file(out) as draft:
        draft.write_text(text, "utf-8")
    note(f"card: {out}")


@app.command()
def pack(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="Folder to write; new or empty.")],
    repository: Annotated[str, typer.Option("--as", help="ORG/NAME, for the card.")] = "",
    licence: Licence = "other",
    pictures: Pictures = None,
    as_json: Json = False,
) -> None:
    """Write the very folder that medgrape hub push would bring to a hub: the run's files and a model card.

    Example: medgrape hub pack runs/demo --out published --license apache-2.0 --without-pictures
    """
    from medgrape.runs.hub.publish import Publishing
    from medgrape.runs.hub.publish import pack as packed

    made = packed(run, out, Publishing(repository, licence, pictures))
    if as_json:
        print_json(made.to_json())
        return
    _print(made)
    note(f"folder: {made.folder}")


@app.command()
def push(
    run: RunArgument,
    repository: Repository,
    licence: Licence = "other",
    pictures: Pictures = None,
    private: Annotated[bool, typer.Option("--private", help="If the repository is new: nobody else sees it.")] = False,
    branch: Annotated[str, typer.Option(help="Of the repository; made if it is not there.")] = "main",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be pushed, and ask nobody.")] = False,
    as_json: Json = False,
) -> None:
    """Bring a run and its model card to a model hub, as one commit.

    Example: medgrape hub push runs/demo org/demo --license apache-2.0 --without-pictures --private
    """
    from medgrape.runs.hub.download import refuse_unnameable
    from medgrape.runs.hub.publish import Publishing

    refuse_unnameable(repository)
    publishing = Publishing(repository, licence, pictures)
    if dry_run:
        _rehearse(run, publishing, as_json=as_json)
        return
    from medgrape.runs.hub.publish import push as pushed

    with err.status(f"pushing to {repository}"):
        done = pushed(run, publishing, branch=branch, private=private)
    if as_json:
        print_json(done.to_json())
        return
    _print(done.packed)
    for name in done.removed:
        note(f"removed, as it was of the run before: {name}")
    note(f'pushed: {done.repository}, commit {done.commit}. Load it: mg.load("{repository}", revision="{done.commit}")')


def _rehearse(run: Path, publishing: "Publishing", *, as_json: bool) -> None:
    import tempfile

    from medgrape.runs.hub.publish import pack as packed

    with tempfile.TemporaryDirectory(prefix="medgrape-hub-") as folder:
        made = packed(run, Path(folder) / "run", publishing)
    if as_json:
        print_json({name: told for name, told in made.to_json().items() if name != "folder"})
        return
    _print(made)
    note("Nothing was pushed.")


def _print(made: "Packed") -> None:
    for name in made.files:
        note(name)
    note(f"{len(made.files)} files, {made.size / 1e6:,.1f} MB")
    if made.pictures:
        note(f"warning: among them are pictures of {made.pictures} training films, for everybody who gets this.")
    for warning in made.warnings:
        note(f"warning: {warning}")
