"""Runs the blocks of a page in a folder with the files it uses, one shell and one Python namespace."""

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
from background_servers import Servers
from document_blocks import Block
from page_shell import Shell, may_be_missing, missing_program

from medgrape.config import ConfigError, parse_config
from medgrape.hospital.pacs.servers import ServerSettings as PacsSettings
from medgrape.server.settings import ServerSettings

PYPROJECT_TABLES = {"project", "build-system", "tool"}


@dataclass
class Sandbox:
    """Runs the blocks of one page."""

    folder: Path
    shell: Shell
    main: types.ModuleType = field(default_factory=lambda: types.ModuleType("__main__"))

    def run(self, block: Block) -> None:
        """Run or parse a block; a failure names page and line."""
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        how = {"bash": self._bash, "python": self._python, "toml": _toml, "json": _json, "yaml": _yaml}
        problem = how[block.language](block)
        if problem is None and "fails" in block.notes:
            pytest.fail(
                f"{block.place} should fail ({block.notes['fails']}) but does not:\n{block.text}", pytrace=False
            )
        if problem is not None and "fails" not in block.notes:
            pytest.fail(f"{block.place}: {problem}", pytrace=False)

    def _bash(self, block: Block) -> str | None:
        ended = self.shell.run(block.text)
        if missing := missing_program(ended):
            if may_be_missing(missing):
                pytest.skip(f"{block.place} needs {missing}")
            pytest.fail(f"{block.place}: there is no program {missing!r}:\n{block.text}\n{ended.output}", pytrace=False)
        return f"exit code {ended.code} of\n{block.text}\n{ended.output}" if ended.code else None

    def _python(self, block: Block) -> str | None:
        """Run the block as part of one program per page; tracebacks show the lines of the page."""
        text, output = self.shell.servers.ports.replace_in(block.text), io.StringIO()
        before = sys.modules["__main__"], list(sys.path)
        sys.modules["__main__"] = self.main
        sys.path.insert(0, str(self.folder))
        try:
            code = compile("\n" * (block.line - 1) + text, str(block.page), "exec", dont_inherit=True)
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                exec(code, self.main.__dict__)  # noqa: S102 (our own pages)
        except Exception:
            return f"{traceback.format_exc()}\n{output.getvalue()}"
        finally:
            sys.modules["__main__"], sys.path[:] = before
        return None


def copy_props(folder: Path, props: Path, made: set[str]) -> None:
    """Copy the files that the page uses, except those it makes itself."""
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
    """Return a sandbox with the files of the page and no server."""
    page, work = folder / "page", folder / "work"
    page.mkdir()
    copy_props(page, props, made)
    shell = Shell(page, work, Servers(work), props / "configs")
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
    """Check the block as settings of a training, a server or PACS servers; files of other programs pass."""
    try:
        tables = tomllib.loads(block.text)
    except tomllib.TOMLDecodeError as error:
        return f"{error} in\n{block.text}"
    if not tables or PYPROJECT_TABLES & set(tables):
        return None
    checks = (_training, _server, _pacs)
    problems = [problem for check in checks if (problem := check(tables))]
    return None if len(problems) < len(checks) else "Not valid settings:\n" + "\n".join(problems)


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
        return "pacs.toml has the table servers only"
    try:
        for server in tables["servers"].values():
            PacsSettings.model_validate(server)
    except ValueError as error:
        return str(error)
    return None
