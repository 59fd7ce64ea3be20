"""Reading many films: one row for each, even if workers crash."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pyarrow.parquet as pq
import pytest
from bulk_scenes import InProcessEngine, InProcessSlot, bulk_request, copies, kill_when, rows
from filelock import FileLock

from command_line import medgrape
from medgrape.bulk.film_reader import FilmReader, WorkerConfig, model_version
from medgrape.bulk.local import LocalEngine, LocalWorkerSlot
from medgrape.bulk.run import CRASHED, BulkRequest, WorkerDiedError, WorkerSlotLostError, read_in_bulk
from medgrape.errors import UserError
from medgrape.reader import load


@dataclass
class Watched:
    """The local engine with slots that a test can look at."""

    workers: int = 2
    name: str = "local"
    given: list[LocalWorkerSlot] = field(default_factory=list)

    def slots(self, config: WorkerConfig) -> list:
        self.given = LocalEngine(self.workers).slots(config)
        return list(self.given)


def test_a_row_equals_the_reading_of_the_film_alone(tiny, films, tmp_path):
    summary = read_in_bulk(bulk_request(films[0].parent, tiny, tmp_path / "out", part=3), InProcessEngine())
    assert (summary.all.films, summary.all.refused, summary.all.parts) == (8, 0, 3)
    study = load(tiny).open(films[2])
    told, row = study.explain().to_json(), rows(tmp_path / "out")[2]
    assert (row["film"], row["status"], row["reason"], row["warnings"]) == (str(films[2]), "read", None, [])
    assert (row["width"], row["height"], row["model"]) == (96, 80, model_version(tiny))
    assert row["predicted"] == max(told["probabilities"], key=told["probabilities"].get)
    for name, share in told["probabilities"].items():
        assert row[f"probability_{name}"] == pytest.approx(share, abs=1e-3)
    for one in told["concepts"]:
        name = one["name"]
        assert row[f"score_{name}"] == pytest.approx(one["score"], abs=1e-3)
        assert (row[f"x_{name}"], row[f"y_{name}"]) == (one["peak"]["x"], one["peak"]["y"])
        assert row[f"seen_{name}"] == one["words"]


def test_unreadable_films_have_rows_with_a_reason(tiny, films, tmp_path):
    films[0].write_bytes(films[0].read_bytes()[:200])
    films[1].write_text("no film")
    listed = tmp_path / "some.txt"
    listed.write_text("".join(f"{film}\n" for film in [*films, "missing.png"]))
    summary = read_in_bulk(bulk_request(listed, tiny, tmp_path / "out"), InProcessEngine())
    found = {row["film"]: row for row in rows(tmp_path / "out")}
    assert summary.all.refused == 3
    assert "damaged" in found[str(films[0])]["reason"]
    assert found[str(films[1])]["reason"] == "it is not a film: neither PNG, JPEG nor DICOM."
    assert found[str(tmp_path / "missing.png")]["reason"].startswith("cannot be opened")
    assert found[str(films[0])]["predicted"] is None
    assert sum(row["status"] == "read" for row in found.values()) == 6
    assert json.loads((tmp_path / "out/_summary.json").read_text())["refused"] == 3


def test_a_killed_worker_neither_loses_nor_duplicates_rows(tiny, films, tmp_path):
    folder, out, engine = copies(films, tmp_path / "many", 160), tmp_path / "out", Watched()
    killer = kill_when(lambda: list(out.glob("part-*")), lambda: engine.given[0].process_id)
    summary = read_in_bulk(bulk_request(folder, tiny, out), engine)
    killer.join()
    assert [row["film"] for row in rows(out)] == [str(film) for film in sorted(folder.iterdir())]
    assert (summary.all.films, summary.all.refused) == (160, 0)
    assert not [one for one in psutil.Process().children(recursive=True) if "medgrape.bulk.local" in one.cmdline()]


def test_a_film_that_crashes_every_worker_is_refused_and_the_others_are_read(tiny, films, tmp_path):
    class Fragile(InProcessSlot):
        def read(self, films, refused=None):
            if refused is None and any("film2" in film.name for film in films):
                self.close()
                raise WorkerDiedError
            return super().read(films, refused)

    read_in_bulk(bulk_request(films[0].parent, tiny, tmp_path / "out", part=4), InProcessEngine(Fragile))
    reasons = [row["reason"] for row in rows(tmp_path / "out")]
    assert reasons == [None, None, CRASHED, *[None] * 5]


def test_if_no_worker_can_be_started_again_finished_parts_are_kept(tiny, films, tmp_path):
    class Last(InProcessSlot):
        def read(self, films, refused=None):
            if "film4" in films[0].name:
                raise WorkerDiedError
            return super().read(films, refused)

        def launch(self):
            if self._reader is not None:
                raise WorkerSlotLostError
            super().launch()

    with pytest.raises(UserError, match="No worker is left"):
        read_in_bulk(bulk_request(films[0].parent, tiny, tmp_path / "out", part=2), InProcessEngine(Last))
    assert len(list((tmp_path / "out").glob("part-*"))) == 2


def test_workers_that_never_get_ready_are_an_error_and_leave_no_files(tiny, films, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    with pytest.raises(UserError, match="No worker can be started"):
        read_in_bulk(bulk_request(films[0].parent, tiny, tmp_path / "out"), LocalEngine(1))
    assert not (tmp_path / "out").exists()


def test_after_a_killed_call_only_missing_parts_are_read(tiny, films, tmp_path):
    out, folder = tmp_path / "out", films[0].parent
    read_in_bulk(bulk_request(folder, tiny, out, part=2), InProcessEngine())
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    (out / "part-00001.parquet").unlink()
    (out / "part-00002.parquet").write_bytes(b"cut short")
    pq.write_table(pq.read_table(out / "part-00003.parquet").slice(1), out / "part-00003.parquet")
    (out / ".part-00001.parquet.1-1.part").write_bytes(b"draft of a killed call")
    summary = read_in_bulk(bulk_request(folder, tiny, out, part=None), InProcessEngine())
    assert (summary.found.films, summary.made.films) == (2, 6)
    assert (out / "part-00000.parquet").stat().st_mtime_ns == before["part-00000.parquet"]
    assert [row["film"] for row in rows(out)] == [str(film) for film in films]
    assert not list(out.glob(".*.part"))


def test_if_all_parts_exist_no_worker_is_started(tiny, films, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read_in_bulk(BulkRequest(("films",), tiny, tmp_path / "out"), InProcessEngine())
    engine = InProcessEngine()
    assert read_in_bulk(bulk_request(films[0].parent, tiny, tmp_path / "out", part=None), engine).found.films == 8
    assert engine.asked == 0
    assert rows(tmp_path / "out")[0]["film"] == "films/film0.png"


def test_another_model_other_films_and_a_second_call_at_once_are_errors(tiny, films, tmp_path):
    out, folder, other = tmp_path / "out", films[0].parent, tmp_path / "other"
    read_in_bulk(bulk_request(folder, tiny, out), InProcessEngine())
    shutil.copytree(tiny, other)
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(manifest, indent=3))
    with pytest.raises(UserError, match="another model"):
        read_in_bulk(bulk_request(folder, other, out), InProcessEngine())
    with pytest.raises(UserError, match="4 films to a part"):
        read_in_bulk(bulk_request(folder, tiny, out, part=5), InProcessEngine())
    with FileLock(out / ".lock"), pytest.raises(UserError, match="Another process"):
        read_in_bulk(bulk_request(folder, tiny, out), InProcessEngine())
    films[7].unlink()
    with pytest.raises(UserError, match=r"other films \(8, now 7\)"):
        read_in_bulk(bulk_request(folder, tiny, out), InProcessEngine())


def test_invalid_input_leaves_no_files(tiny, films, tmp_path):
    broken, empty = tmp_path / "broken", tmp_path / "empty"
    shutil.copytree(tiny, broken)
    (broken / "config.toml").write_text("")
    empty.mkdir()
    for place, model, told in [
        (films[0].parent, broken, "was altered"),
        (films[0].parent, empty, "is no run"),
        (empty, tiny, "There is no film"),
        (tmp_path / "nowhere", tiny, "does not exist"),
    ]:
        with pytest.raises(UserError, match=told):
            read_in_bulk(bulk_request(place, model, tmp_path / "out"), InProcessEngine())
        assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="something else"):
        read_in_bulk(bulk_request(films[0].parent, tiny, films[0].parent), InProcessEngine())


def test_films_are_downloaded_over_http_and_deleted_afterwards(tiny, films, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)  # it is remembered
    (tmp_path / "tmp").mkdir()
    left_by_a_killed_worker = tmp_path / "tmp" / "medgrape-fetched-999999999-x"
    left_by_a_killed_worker.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=films[0].parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}"
    listed = tmp_path / "some.txt"
    listed.write_text("".join(f"{place}/{film.name}\n" for film in films) + f"{place}/missing.png\n")
    try:
        read_in_bulk(bulk_request(listed, tiny, tmp_path / "out"), InProcessEngine())
    finally:
        server.shutdown()
        server.server_close()
    found = rows(tmp_path / "out")
    assert [row["status"] for row in found] == ["read"] * 8 + ["refused"]
    assert found[-1]["reason"].startswith("it cannot be fetched (FileNotFoundError")
    assert list((tmp_path / "tmp").iterdir()) == []


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_film_in_storage_may_be_no_larger_than_one_on_disk():
    import fsspec

    from medgrape.bulk.listing import DownloadFolder
    from medgrape.config import FilmLimits
    from medgrape.films.film import FilmError

    fsspec.filesystem("memory").pipe("/large.png", bytes(5000))
    downloads = DownloadFolder()
    try:
        assert downloads.fetch("memory://large.png", FilmLimits(max_bytes=5000)).stat().st_size == 5000
        with pytest.raises(FilmError, match="more than 4,999 bytes"):
            downloads.fetch("memory://large.png", FilmLimits(max_bytes=4999))
    finally:
        downloads.close()
        fsspec.filesystem("memory").rm("/large.png")


def test_ctrl_c_ends_everything_and_leaves_whole_parts(tiny, films, tmp_path):
    folder, out = copies(films, tmp_path / "many", 300), tmp_path / "out"
    command = [sys.executable, "-m", "medgrape", "predict", str(folder), "--model", str(tiny), "--out", str(out)]
    running = subprocess.Popen([*command, "--shard", "4"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(out.glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    assert "Traceback" not in running.communicate(timeout=20)[1]
    assert running.returncode == 130
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    assert all(pq.read_table(part).num_rows == 4 for part in out.glob("part-*"))
    assert not (out / "_summary.json").exists()
    ended = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["films"] == len({row["film"] for row in rows(out)}) == 300


def test_workers_end_when_their_parent_is_killed(tiny, films, tmp_path):
    folder = copies(films, tmp_path / "many", 400)
    command = [sys.executable, "-m", "medgrape", "predict", str(folder), "--model", str(tiny), "--out", "out"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.wait()
    assert len(workers) >= 2
    assert psutil.wait_procs(workers, timeout=20)[1] == []


def test_a_worker_with_another_model_than_its_parent_is_an_error(tiny):
    with pytest.raises(UserError, match="another model here"):
        FilmReader(WorkerConfig(model=tiny, version="0123456789abcdef"))


def test_invalid_input_of_predict_gives_an_error_of_one_sentence(tiny, films, tmp_path):
    typed = partial(medgrape, "predict", cwd=tmp_path)

    ended = typed(films[0], "--model", tiny, "--out", "out", "--address", "127.0.0.1:1")
    assert (ended.returncode, ended.stderr) == (2, "medgrape: --address names a Ray cluster; add --engine ray.\n")
    ended = typed(films[0], films[1], "--model", tiny, "--out", "out", "--workers", "1")
    assert ended.stdout.splitlines()[0].startswith("2 films: 2 read, 0 refused")
