"""A separate hub cache for every test; no test contacts the real hub."""

from pathlib import Path

import pytest
from hub_stand_in import TOKEN, stand_in
from huggingface_hub import constants


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """HF_HOME, in which nothing was fetched yet, without a network."""
    home = tmp_path / "hf"
    monkeypatch.setattr(constants, "HF_HOME", str(home))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def hub(home, monkeypatch):  # noqa: ARG001 (with its cache)
    """A stand-in for the hub, which the library takes for the real one."""
    with stand_in() as server:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield server
