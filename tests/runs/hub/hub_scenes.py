"""Runs as a hub keeps them."""

import hashlib
from pathlib import Path

COMMIT, OLDER = f"{0xC0FFEE:040x}", f"{0x01DCA5E:040x}"


def cached(home: Path, files: dict[str, bytes], commit: str, **refs: str) -> Path:
    """A commit of org/tb in the hub's cache layout: blobs, a snapshot of links to them, and names for commits."""
    store = home / "hub" / "models--org--tb"
    for name, content in files.items():
        blob = store / "blobs" / hashlib.sha256(content).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        place = store / "snapshots" / commit / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(blob)
    for ref, target in refs.items():
        path = store / "refs" / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(target, "utf-8")
    return store / "snapshots" / commit


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, by name."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
