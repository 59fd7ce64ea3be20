"""A trained model that opens films as studies."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from medgrape.concepts import Concept, ConceptSet
from medgrape.explain.notebook import table
from medgrape.explain.words import NOTICE
from medgrape.films.decoder import Decoder, Request
from medgrape.films.film import Film
from medgrape.geometry import PatchGrid
from medgrape.model.evidence import Evidence, similarity
from medgrape.progress import Track, quietly
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.runs.exported import load_readable
from medgrape.runs.hub.download import fetch_run, hub_name
from medgrape.runs.manifest import HubOrigin, origin_of
from medgrape.study import Study
from medgrape.vocabulary.curation import discard, restore
from medgrape.vocabulary.learning import ShownFilm, extend_head, learn_concept

log = logging.getLogger("medgrape.hub")


@dataclass(frozen=True, repr=False)
class Reader:
    """A run that is loaded to read films."""

    loaded: LoadedRun

    @property
    def concepts(self) -> ConceptSet:
        """The concepts that the model knows."""
        return self.loaded.run.concepts

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that the model predicts."""
        return self.loaded.run.classes

    @property
    def origin(self) -> HubOrigin | None:
        """Repository and commit of a run from a model hub; pin the commit to load the same run again."""
        return origin_of(self.loaded.folder)

    def __repr__(self) -> str:
        counts = f"{len(self.concepts)} concepts, {len(self.classes)} classes"
        return f"Reader({str(self.loaded.folder)!r}: {counts}; {self.loaded.run.model.runtime})"

    def _repr_html_(self) -> str:
        """Return concepts and classes as a table for a notebook."""
        rows = [(concept.name, concept.title, concept.description) for concept in self.concepts]
        check = "not calibrated" if self.loaded.run.safety is None else "calibrated"
        footer = f"Decides between {', '.join(self.classes)}. Safety check: {check}. {NOTICE}"
        return table(repr(self), ("concept", "title", "description"), rows, footer)

    def open(self, film: Path | str, decoder: Decoder | None = None) -> Study:
        """Decode a film in a separate process, which a damaged file may crash, and encode it once.

        Pass a ``decoder`` to open many films with one process.
        """
        if decoder is None:
            with Decoder() as temporary:
                return self.open(film, temporary)
        path, config = Path(film), self.loaded.run.config
        whole = decoder.read(Request(path, config.limits, None))
        return self.study(whole, decoder.read(Request(path, config.limits, config.preprocessing)))

    def study(self, whole: Film, prepared: Film) -> Study:
        """Return the study of a decoded film: as people see it, and preprocessed for the model."""
        return self.study_of(whole, self.encode([prepared])[0])

    @torch.no_grad()
    def encode(self, prepared: Sequence[Film]) -> Float[Tensor, "b d h w"]:
        """Run backbone and projector on preprocessed films; returns the embedding of every patch."""
        greys = torch.from_numpy(np.stack([film.pixels for film in prepared])).unsqueeze(1).float().div(255.0)
        return self.loaded.run.model.patches(greys)

    @torch.no_grad()
    def study_of(self, whole: Film, patches: Float[Tensor, "d h w"]) -> Study:
        """Return the study of an encoded film; the encoder had the same backbone and projector as this model."""
        atlas = self.loaded.run.model.atlas
        cosines = similarity(patches, atlas.prototypes)
        grid = PatchGrid(whole.facts.size, cosines.shape[-2], cosines.shape[-1])
        evidence = Evidence(self.concepts, grid, cosines, atlas.kept)
        return Study(self.loaded.run, whole, evidence, model=self.loaded.name)

    def learn(
        self,
        name: str,
        description: str,
        examples: Sequence[ShownFilm] = (),
        *,
        title: str | None = None,
        seed: int = 0,
        track: Track = quietly,
    ) -> "Reader":
        """Return a reader with one more concept, learnt from a description, from films with or without a box, or both.

        The maps of other concepts and all class probabilities stay the same to the last bit. Nothing is written.
        """
        concept = Concept(name, name.replace("_", " ").capitalize() if title is None else title, description)
        learnt = learn_concept(self.loaded.run, concept, examples, seed=seed, track=track)
        return self.changed(learnt.run, learnt.what)

    def grow_head(self, probability: Float[Tensor, "k k"] | None = None) -> "Reader":
        """Return a reader whose head uses every concept learnt later; classes change only when the head is trained."""
        grown = extend_head(self.loaded.run, probability)
        return self.changed(grown.run, grown.what)

    def discard(self, concept: str, numbers: Iterable[int]) -> "Reader":
        """Return a reader without some prototypes of a concept."""
        return Reader(discard(self.loaded, concept, numbers))

    def restore(self, concept: str, numbers: Iterable[int]) -> "Reader":
        """Return a reader with discarded prototypes restored."""
        return Reader(restore(self.loaded, concept, numbers))

    def changed(self, run: Run, what: str) -> "Reader":
        """Return a reader with a changed run; ``what`` describes the change in one sentence. Nothing is written."""
        return Reader(self.loaded.changed(run, what))

    def save(self, out: Path | str) -> "Reader":
        """Write the run with all changes into a new folder, or into its own."""
        return Reader(self.loaded.save_changed(self.loaded.run, Path(out)))


def load(run: Path | str, revision: str | None = None, *, track: Track = quietly) -> Reader:
    """Load the run in a folder, the export in an .onnx file, or the run ``org/name`` on a model hub; verify checksums.

    If the revision on a hub is not a commit, the log ``medgrape.hub`` names the commit that was loaded as a warning.
    """
    wanted = hub_name(run, revision)
    if wanted is None:
        return Reader(load_readable(Path(run)))
    folder = fetch_run(wanted, track=track)
    if not wanted.pinned:
        log.warning(wanted.notice(folder.name))
    return Reader(load_readable(folder))
