"""A suite that is run once, on few films, with settings that learn in seconds."""

import pytest
import tomli_w

from medgrape.paper.reproduce import PaperRequest, reproduce
from medgrape.paper.suites import chosen_suites
from small_settings import small

BRIEF = {
    "concepts": {"views": 3},
    "end_to_end": {"epochs": 1, "batch": 16},
    "black_box": {"epochs": 1, "batch": 16},
    "cbm": {"epochs": 1, "batch": 16},
    "pip_net_parts": {"epochs": 1, "batch": 8, "parts": 8},
    "pip_net": {"epochs": 1, "batch": 8},
    "vectors": {"boxes": False, "normal": []},
    "prototypes": {"background": False, "dispersion": 0.0},
}


@pytest.fixture(scope="session")
def brief(tmp_path_factory):
    """Base settings, as a file."""
    path = tmp_path_factory.mktemp("settings") / "brief.toml"
    path.write_text(tomli_w.dumps(small(stages=BRIEF, safety={"gate": float("inf")}).model_dump(mode="json")))
    return path


@pytest.fixture(scope="session")
def some_tables(drawn_dataset, brief, tmp_path_factory):
    """A folder with the results of some suites, one seed, and what the command returned."""
    out = tmp_path_factory.mktemp("reproduced") / "out"
    suites = chosen_suites(
        ["modules", "heads", "eta", "safety", "dropout", "confusion", "dispersion", "context", "settings"]
    )
    request = PaperRequest(suites, drawn_dataset, out, seeds=(0,), config=brief, quick=True)
    return request, reproduce(request)
