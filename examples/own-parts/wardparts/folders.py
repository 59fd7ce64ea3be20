"""A data source: films that somebody sorted into one folder for each finding."""

from pathlib import Path

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import FilmRecord
from medgrape.datasets.draft import Draft, film_files
from medgrape.errors import UserError
from medgrape.progress import Track, quietly


def read_folders(folder: Path, *, normal: str = "normal", patient_ends_at: str = "_", track: Track = quietly) -> Draft:
    """``cavity/p17_2.png`` is film p17_2 of patient p17 and shows a cavity; what lies in ``normal`` shows nothing."""
    below = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if normal not in below:
        raise UserError(
            f"{folder} has no folder {normal!r}; say --option normal=NAME for that of films without finding."
        )
    findings = [name for name in below if name != normal]
    concepts = ConceptSet(tuple(Concept.named(name) for name in findings))
    concept_of = dict(zip(findings, concepts.names, strict=True))
    draft = Draft(folder.resolve().name, "folders", folder, (normal, *findings), concepts)
    draft.notes.append("a film in the folder of one finding counts as a film without the others")
    files = film_files([folder / name for name in below])
    for path in track(files, "reading films", len(files)):
        inside = path.relative_to(folder)
        size = draft.size_of(inside.as_posix())  # one that cannot be read becomes a complaint
        if size is not None:
            shown = concept_of.get(inside.parts[0])
            labels = {name: name == shown for name in concepts.names}
            patient = path.stem.split(patient_ends_at)[0]
            film_id = f"{inside.parts[0]}-{path.stem}"
            draft.films.append(FilmRecord(film_id, inside.as_posix(), inside.parts[0], patient, size, labels))
    return draft
