"""A trained model at the light box: it opens films, and every question after that is cheap."""

from dataclasses import dataclass
from pathlib import Path

import torch

from medgrape.concepts import ConceptSet
from medgrape.data.decoder import Decoder, Request
from medgrape.data.film import Film
from medgrape.feedback.study import Study
from medgrape.geometry import PatchGrid
from medgrape.model.checkpoint import LoadedRun, load_run
from medgrape.model.evidence import Evidence, similarity


@dataclass(frozen=True)
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

    def open(self, film: Path | str) -> Study:
        """A film, encoded once. It is decoded in a process of its own, which a broken file may take down."""
        path = Path(film)
        config = self.loaded.run.config
        with Decoder() as decoder:
            whole = decoder.read(Request(path, config.limits, None))
            prepared = decoder.read(Request(path, config.limits, config.preprocessing))
        return self.study(whole, prepared)

    def study(self, whole: Film, prepared: Film) -> Study:
        """A film that was decoded already: as people see it, and as the model does."""
        model = self.loaded.run.model
        greys = torch.from_numpy(prepared.pixels.copy()).float().div(255.0)[None, None]
        with torch.no_grad():
            patches = model.patches(greys)[0]
            found = similarity(patches, model.atlas.prototypes)
        grid = PatchGrid(whole.facts.size, found.shape[-2], found.shape[-1])
        return Study(self.loaded.run, whole, Evidence(self.concepts, grid, found))


def load(run: Path | str) -> Reader:
    """The run in a folder, after every checksum was compared."""
    return Reader(load_run(Path(run)))
