"""The Dockerfile and the compose file, read by their own linters; no Docker engine is needed."""

from pathlib import Path

from release.bench import Bench
from release.programs import done, tool


def lint(bench: Bench) -> str:
    """Refuse what hadolint or the compose specification refuses."""
    return lint_files(bench.root)


def lint_files(root: Path) -> str:
    """The same for any working copy."""
    done([tool("hadolint"), "--failure-threshold", "style", "Dockerfile"], root)
    done([tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "compose.yaml"], root)
    return "hadolint has nothing to say about Dockerfile; compose.yaml fits the compose specification."
