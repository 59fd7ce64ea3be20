"""Where a page is tried: an empty folder with the props, one shell, one Python."""

import contextlib
import io
import json
import shutil
import sys
import tomllib
import traceback
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from document_blocks import Block
from left_running import Servers
from typed_shell import Shell, may_be_missing, missing_program

from medgrape.config import ConfigError, parse_config
from medgrape.hospital.pacs.servers import ServerSettings as PacsSettings
from medgrape.server.settings import ServerSettings

FOREIGN = {"project", "build-system", "tool"}
"""Tables of pyproject.toml."""


@dataclass
class Sandbox:
    """One page's."""

    folder: Path
    shell: Shell
    main: types.ModuleType = field(default_factory=lambda: types.ModuleType("__main__"))

    def run(self, block: Block) -> None:
        """Run or parse a block; what goes wrong is told with its place."""
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        how = {"bash": self._bash, "python": self._python, "toml": _toml, "json": _json, "yaml": _yaml}
        problem = how[block.language](block)
        if problem is None and "fails" in block.notes:
            pytest.fail(f"{block.place} is to fail ({block.notes['fails']}) and does not:\n{block.text}", pytrace=False)
        if problem is not None and "fails" not in block.notes:
            pytest.fail(f"{block.place}: {problem}", pytrace=False)

    def _bash(self, block: Block) -> str | None:
        ended = self.shell.run(block.text)
        if missing := missing_program(ended):
            if may_be_missing(missing):
                pytest.skip(f"{block.place} needs {missing}")
            pytest.fail(f"{block.place}: there is no program {missing!r}:\n{block.text}\n{ended.said}", pytrace=False)
        return f"exit code {ended.code} of\n{block.text}\n{ended.said}" if ended.code else None

    def _python(self, block: Block) -> str | None:
        """All blocks of a page are one program; a traceback tells lines of the page."""
        text, said = self.shell.servers.ports.put_into(block.text), io.StringIO()
        before = sys.modules["__main__"], list(sys.path)
        sys.modules["__main__"] = self.main
        sys.path.insert(0, str(self.folder))
        try:
            code = compile("\n" * (block.line - 1) + text, str(block.page), "exec", dont_inherit=True)
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                exec(code, self.main.__dict__)  # noqa: S102 (our own pages)
        except Exception:
            return f"{traceback.format_exc()}\n{said.getvalue()}"
        finally:
            sys.modules["__main__"], sys.path[:] = before
        return None


def furnish(folder: Path, props: Path, made: set[str]) -> None:
    """Copy the props in, but none that the page makes itself."""
    for prop in ("data/tb", "runs/tb", *(path.name for path in props.iterdir() if path.name not in ("data", "runs"))):
        if prop in made:
            continue
        target = folder / prop
        target.parent.mkdir(parents=True, exist_ok=True)
        if (props / prop).is_dir():
            shutil.copytree(props / prop, target)
        else:
            shutil.copy(props / prop, target)


def open_sandbox(folder: Path, props: Path, made: set[str]) -> Sandbox:
    """Furnished, with nothing running."""
    page, desk = folder / "page", folder / "desk"
    page.mkdir()
    furnish(page, props, made)
    shell = Shell(page, desk, Servers(desk), props / "configs")
    return Sandbox(page, shell)


def _json(block: Block) -> str | None:
    try:
        json.loads(block.text)
    except ValueError as error:
        return f"{error} in\n{block.text}"
    return None


def _yaml(block: Block) -> str | None:
    try:
        list(yaml.safe_load_all(block.text))
    except yaml.YAMLError as error:
        return str(error)
    return None


def _toml(block: Block) -> str | None:
    """Settings of a training, of a server, of PACS to ask, or another program's."""
    try:
        tables = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        return f"{error} in\n{block.text}"
    if not tables or FOREIGN & set(tables):
        return None
    kinds = (_training, _server, _pacs)
    complaints = [problem for kind in kinds if (problem := kind(tables))]
    return None if len(complaints) < len(kinds) else "No settings of ours:\n" + "\n".join(complaints)


def _training(tables: dict[str, Any]) -> str | None:
    try:
        parse_config(tables, "a block")
    except ConfigError as error:
        return str(error)
    return None


def _server(tables: dict[str, Any]) -> str | None:
    try:
        ServerSettings.model_validate(tables)
    except ValueError as error:
        return str(error)
    return None


def _pacs(tables: dict[str, Any]) -> str | None:
    if set(tables) != {"servers"}:
        return "pacs.toml has servers, and nothing else"
    try:
        for server in tables["servers"].values():
            PacsSettings.model_validate(server)
    except ValueError as error:
        return str(error)
    return None
