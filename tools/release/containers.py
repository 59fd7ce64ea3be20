"""Lints the Dockerfile and the compose file; needs no Docker engine."""

from pathlib import Path

from release.programs import run_checked, tool
from release.workspace import Workspace


def lint(workspace: Workspace) -> str:
    """Run hadolint and validate against the compose specification."""
    return lint_files(workspace.root)


def lint_files(root: Path) -> str:
    """Lint the files of a working copy."""
    run_checked([tool("hadolint"), "--failure-threshold", "style", "Dockerfile"], root)
    run_checked([tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "compose.yaml"], root)
    return "hadolint has nothing to say about Dockerfile; compose.yaml fits the compose specification."
