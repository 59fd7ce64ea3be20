"""A trained model at the light box: it opens films, and every question after that is cheap."""

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
    """A run, ready to read."""

    loaded: LoadedRun

    @property
    def concepts(self) -> ConceptSet:
        """What it can point at."""
        return self.loaded.run.concepts

    @property
    def classes(self) -> tuple[str, ...]:
        """What it decides between."""
        return self.loaded.run.classes

    def __repr__(self) -> str:
        counts = f"{len(self.concepts)} concepts, {len(self.classes)} classes"
        return f"Reader({str(self.loaded.folder)!r}: {counts}; {self.loaded.run.model.runtime})"

    def _repr_html_(self) -> str:
        """What it looks for and decides between, in a notebook."""
        run, rows = self.loaded.run, [(one.name, one.title, one.description) for one in self.concepts]
        check = "calibrated" if run.safety is not None else "not calibrated"
        told = f"Decides between {', '.join(self.classes)}. Safety check: {check}. {NOTICE}"
        return table(repr(self), ("concept", "title", "description"), rows, told)

    @property
    def origin(self) -> HubOrigin | None:
        """Repository and commit, of a run that came from a model hub; its commit is what to pin."""
        return origin_of(self.loaded.folder)

    def open(self, film: Path | str, decoder: Decoder | None = None) -> Study:
        """A film, encoded once. It is decoded in a process of its own, which a broken file may take down.

        Who opens many films hands in a ``decoder``, which then needs to start once only.
        """
        if decoder is None:
            with Decoder() as own:
                return self.open(film, own)
        path, config = Path(film), self.loaded.run.config
        whole = decoder.read(Request(path, config.limits, None))
        return self.study(whole, decoder.read(Request(path, config.limits, config.preprocessing)))

    def study(self, whole: Film, prepared: Film) -> Study:
        """A film that was decoded already: as people see it, and as the model does."""
        return self.study_of(whole, self.encode([prepared])[0])

    @torch.no_grad()
    def encode(self, prepared: Sequence[Film]) -> Float[Tensor, "b d h w"]:
        """Every patch of some films, in the space of prototypes: all that the backbone is run for."""
        greys = torch.from_numpy(np.stack([film.pixels for film in prepared])).unsqueeze(1).float().div(255.0)
        return self.loaded.run.model.patches(greys)

    @torch.no_grad()
    def study_of(self, whole: Film, patches: Float[Tensor, "d h w"]) -> Study:
        """A film that was encoded already, by this model or by one with the same backbone and projector."""
        atlas = self.loaded.run.model.atlas
        found = similarity(patches, atlas.prototypes)
        grid = PatchGrid(whole.facts.size, found.shape[-2], found.shape[-1])
        seen = Evidence(self.concepts, grid, found, atlas.kept)
        return Study(self.loaded.run, whole, seen, model=self.loaded.name)

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
        """A reader that knows one more concept, from its description, from films with or without a box, or both.

        Every other concept's map and every class probability stays what it was, to the last bit. Nothing is written.
        """
        concept = Concept(name, name.replace("_", " ").capitalize() if title is None else title, description)
        learnt = learn_concept(self.loaded.run, concept, examples, seed=seed, track=track)
        return self.changed(learnt.run, learnt.what)

    def grow_head(self, probability: Float[Tensor, "k k"] | None = None) -> "Reader":
        """A reader whose head listens to every concept learnt later; no class changes until the head is trained."""
        grown = extend_head(self.loaded.run, probability)
        return self.changed(grown.run, grown.what)

    def discard(self, concept: str, numbers: Iterable[int]) -> "Reader":
        """A reader without some prototypes of a concept; this one stays as it is."""
        return Reader(discard(self.loaded, concept, numbers))

    def restore(self, concept: str, numbers: Iterable[int]) -> "Reader":
        """The inverse of ``discard``."""
        return Reader(restore(self.loaded, concept, numbers))

    def changed(self, run: Run, what: str) -> "Reader":
        """A reader with another model; ``what`` says in one sentence what was done to this one. Nothing is written."""
        return Reader(self.loaded.changed(run, what))

    def save(self, out: Path | str) -> "Reader":
        """Write the run, with everything that was changed since it was loaded, into a new folder or its own."""
        return Reader(self.loaded.save_changed(self.loaded.run, Path(out)))


def load(run: Path | str, revision: str | None = None, *, track: Track = quietly) -> Reader:
    """The run in a folder, the export in an .onnx file or the run ``org/name`` on a model hub, checksums compared.

    Of a name on a hub that is not pinned to a commit, a warning in the log ``medgrape.hub`` says which one was taken.
    """
    wanted = hub_name(run, revision)
    if wanted is None:
        return Reader(load_readable(Path(run)))
    folder = fetch_run(wanted, track=track)
    if not wanted.pinned:
        log.warning(wanted.notice(folder.name))
    return Reader(load_readable(folder))
