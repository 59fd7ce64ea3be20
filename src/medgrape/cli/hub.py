"""``medgrape hub``: publish a run with a model card on a model hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer, echo

from medgrape.cli.console import err, note, print_json, print_warnings
from medgrape.cli.options import Json, RunArgument, outside_runs

if TYPE_CHECKING:
    from medgrape.runs.hub.publish import Packed, Publishing

app = Typer(no_args_is_help=True, help="Publish a run with a model card on a model hub.")
Licence = Annotated[
    str, Option("--license", help="License that the model card states, such as apache-2.0; other: it states none.")
]
_PICTURES = "Publish or remove the run's pictures of training films. Required if the run has some."
Pictures = Annotated[bool | None, Option("--with-pictures/--without-pictures", help=_PICTURES, show_default=False)]
CardName = Annotated[str, Option("--as", help="ORG/NAME on the hub; the card shows how to load it.")]


@app.command()
def card(
    run: RunArgument,
    out: Annotated[Path | None, Option(help="File to write. (default: print the card)")] = None,
    repository: CardName = "",
    licence: Licence = "other",
) -> None:
    """Write the model card of a run, from the run and the report and audit beside it.

    Example: medgrape hub card runs/demo --out README.md
    """
    from medgrape.files import write_text
    from medgrape.runs.hub.card import card_of

    if out is not None:
        outside_runs(out)
    text = card_of(run, repository=repository, licence=licence)
    if out is None:
        echo(text, nl=False)
        return
    write_text(out, text)
    note(f"card: {out}")


@app.command()
def pack(
    run: RunArgument,
    out: Annotated[Path, Option(help="Folder to write; it must be new or empty.")],
    repository: CardName = "",
    licence: Licence = "other",
    pictures: Pictures = None,
    as_json: Json = False,
) -> None:
    """Write the folder that medgrape hub push would upload: the files of the run and a model card.

    Example: medgrape hub pack runs/demo --out published --license apache-2.0 --without-pictures
    """
    from medgrape.runs.hub.publish import Publishing
    from medgrape.runs.hub.publish import pack as write_folder

    packed = write_folder(run, out, Publishing(repository, licence, pictures))
    if as_json:
        print_json(packed)
        return
    _print(packed)
    note(f"folder: {packed.folder}")


@app.command()
def push(
    run: RunArgument,
    repository: Annotated[str, Argument(help="ORG/NAME on the hub.")],
    licence: Licence = "other",
    pictures: Pictures = None,
    private: Annotated[bool, Option("--private", help="Create a new repository as a private one.")] = False,
    branch: Annotated[str, Option(help="Branch of the repository; created if it does not exist.")] = "main",
    dry_run: Annotated[bool, Option("--dry-run", help="Only list the files; needs no network.")] = False,
    as_json: Json = False,
) -> None:
    """Upload a run and its model card to a model hub, as one commit.

    Example: medgrape hub push runs/demo org/demo --license apache-2.0 --without-pictures --private
    """
    from medgrape.runs.hub.download import refuse_unnameable
    from medgrape.runs.hub.publish import Publishing

    refuse_unnameable(repository)
    publishing = Publishing(repository, licence, pictures)
    if dry_run:
        _list_files(run, publishing, as_json=as_json)
        return
    from medgrape.runs.hub.publish import push as upload

    with err.status(f"pushing to {repository}"):
        pushed = upload(run, publishing, branch=branch, private=private)
    if as_json:
        print_json(pushed)
        return
    _print(pushed.packed)
    for name in pushed.removed:
        note(f"removed, as it belonged to the previous run: {name}")
    note(f"pushed: {pushed.repository}, commit {pushed.commit}")
    note(f'Load it: mg.load("{repository}", revision="{pushed.commit}")')


def _list_files(run: Path, publishing: "Publishing", *, as_json: bool) -> None:
    import tempfile

    from medgrape.runs.hub.publish import pack as write_folder

    with tempfile.TemporaryDirectory(prefix="medgrape-hub-") as folder:
        packed = write_folder(run, Path(folder) / "run", publishing)
    if as_json:
        print_json({name: value for name, value in packed.to_json().items() if name != "folder"})
        return
    _print(packed)
    note("Nothing was pushed.")


def _print(packed: "Packed") -> None:
    for name in packed.files:
        note(name)
    note(f"{len(packed.files)} files, {packed.size / 1e6:,.1f} MB")
    if packed.pictures:
        note(f"warning: these include pictures of {packed.pictures} training films, which everybody with access sees.")
    print_warnings(packed.warnings)
