"""A model hub of a few lines on a loopback port: enough for a run to be brought there and fetched again."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_of_the_stand_in"  # noqa: S105 (opens nothing but this)


@dataclass
class Repository:
    """Commits, each with all its files, and names for some of them."""

    commits: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)
    private: bool = False
    gated: bool = False

    def commit(self, branch, changed, deleted=()):
        before = self.commits.get(self.names.get(branch) or self.names.get("main"), {})
        files = {name: content for name, content in (before | changed).items() if name not in deleted}
        checksums = json.dumps({name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())})
        commit = hashlib.sha1(f"{checksums}{len(self.commits)}".encode(), usedforsecurity=False).hexdigest()
        self.commits[commit], self.names[branch] = files, commit
        return commit

    def resolved(self, revision):
        return self.names.get(revision, revision if revision in self.commits else None)


@dataclass
class Hub:
    """What it holds, and what it was asked for."""

    address: str
    repositories: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Requests are recorded in ``Hub.asked``."""

    @property
    def hub(self):
        return self.server.hub

    def _answer(self, status, content=b"", **headers):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.hub.asked.append(path)
        parts = path.strip("/").split("/")
        if parts[0] == "api" and "/".join(parts[2:4]) in self.hub.repositories:
            repository = self.hub.repositories["/".join(parts[2:4])]
            if len(parts) == 4:
                self._answer(200, {"id": "/".join(parts[2:]), "private": repository.private})
                return
            files = repository.commits[repository.resolved(parts[5])]
            self._answer(200, [{"type": "file", "path": p, "size": len(f), "oid": "0" * 40} for p, f in files.items()])
            return
        repository = self.hub.repositories.get("/".join(parts[:2]))
        if repository is None:
            self._answer(401, X_Error_Code="RepoNotFound", X_Error_Message="no such repository")
        elif repository.gated:
            self._answer(403, X_Error_Code="GatedRepo", X_Error_Message="gated")
        else:
            self._file(repository, parts[3], "/".join(parts[4:]))

    def _file(self, repository, revision, name):
        commit = repository.resolved(revision)
        if commit is None:
            self._answer(404, X_Error_Code="RevisionNotFound")
        elif name not in repository.commits[commit]:
            self._answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        else:
            content = repository.commits[commit][name]
            etag = hashlib.sha256(content).hexdigest()
            length = {"Content_Length": str(len(content))}
            self._answer(200, content, X_Repo_Commit=commit, ETag=f'"{etag}"', **length)

    def do_POST(self):
        body = self._body()
        path = self.path.partition("?")[0]
        self.hub.asked.append(path)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}" and path != "/api/validate-yaml":
            self._answer(401, {"error": "Invalid credentials"})
        elif path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        else:
            self._write(path.strip("/").split("/"), body)

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _create(self, request):
        name = f"{request['organization']}/{request['name']}"
        exists = name in self.hub.repositories
        if not exists:
            self.hub.repositories[name] = Repository(private=request.get("visibility") == "private")
            self.hub.repositories[name].commit("main", {".gitattributes": b"*.safetensors filter=lfs\n"})
        self._answer(409 if exists else 200, {"url": f"{self.hub.address}/{name}"})

    def _write(self, parts, body):
        name, what, branch = "/".join(parts[2:4]), parts[4], parts[5]
        repository = self.hub.repositories[name]
        if what == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files})
        elif what == "branch":
            exists = branch in repository.names
            repository.names.setdefault(branch, repository.names["main"])
            self._answer(409 if exists else 200, {})
        else:
            lines = [json.loads(line) for line in body.splitlines() if line]
            added = {o["value"]["path"]: base64.b64decode(o["value"]["content"]) for o in lines if o["key"] == "file"}
            deleted = [line["value"]["path"] for line in lines if line["key"] == "deletedFile"]
            commit = repository.commit(branch, added, deleted)
            url = f"{self.hub.address}/{name}/commit/{commit}"
            self._answer(200, {"success": True, "commitOid": commit, "commitUrl": url})


@contextmanager
def stand_in():
    """A hub that answers until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.hub = Hub(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
