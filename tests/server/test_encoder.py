"""The encoder thread, its batches, and the store of features."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from medgrape.films.film import Film, FilmFacts
from medgrape.geometry import FilmSize
from medgrape.server.inference import Encoder, FeatureStore, LRUCache
from medgrape.server.storage.tables import FilmRow


class SlowBackbone:
    """Tells in its answer which film it was given."""

    def __init__(self, faults=0):
        self.batches, self.faults = [], faults

    def encode(self, films):
        self.batches.append(len(films))
        if len(self.batches) <= self.faults:
            raise RuntimeError("out of memory")
        torch.ones(600, 600) @ torch.ones(600, 600)
        return torch.stack([torch.full((2, 1, 1), float(film.pixels[0, 0])) for film in films])


def film(number):
    return Film(
        FilmFacts(format="PNG", size=FilmSize(4, 4), bits=8, photometric="L"), np.full((4, 4), number, np.uint8)
    )


def test_waiting_films_share_a_batch_and_every_caller_gets_their_film():
    encoder, backbone = Encoder(), SlowBackbone()
    with ThreadPoolExecutor(32) as readers:
        found = list(readers.map(lambda number: float(encoder.encode("a", backbone, film(number))[0, 0, 0]), range(32)))
    encoder.close()
    assert found == [float(number) for number in range(32)]
    assert sum(backbone.batches) == 32
    assert len(backbone.batches) < 32
    assert (encoder.films, encoder.batches) == (32, len(backbone.batches))


def test_after_a_failed_batch_the_next_one_is_encoded():
    encoder, backbone = Encoder(), SlowBackbone(faults=1)
    with pytest.raises(RuntimeError, match="out of memory"):
        encoder.encode("a", backbone, film(1))
    assert float(encoder.encode("a", backbone, film(2))[0, 0, 0]) == 2
    encoder.close()


def test_features_are_computed_once_for_all_threads(tmp_path):
    store, made = FeatureStore(tmp_path), []

    def make():
        made.append(1)
        return torch.rand(2, 3, 3)

    with ThreadPoolExecutor(8) as readers:
        found = list(readers.map(lambda _: store.get_or_compute("e", "abcdef", make), range(8)))
    assert len(made) == 1
    assert all(torch.equal(one, found[0]) for one in found)
    assert torch.equal(FeatureStore(tmp_path).get("e", "abcdef"), found[0])
    store.drop("abcdef")
    assert store.get("e", "abcdef") is None


def test_a_damaged_feature_file_is_computed_again(tmp_path):
    store = FeatureStore(tmp_path)
    store.get_or_compute("e", "abcdef", lambda: torch.zeros(1, 2, 2))
    (path,) = tmp_path.rglob("*.npy")
    path.write_bytes(path.read_bytes()[:50])
    assert float(store.get_or_compute("e", "abcdef", lambda: torch.ones(1, 2, 2)).sum()) == 4
    assert float(store.get("e", "abcdef").sum()) == 4


def test_the_least_recently_used_item_is_dropped_first():
    kept = LRUCache(3, len)
    for key in ("a", "b", "c"):
        kept.put(key, "x")
    kept.get("a")
    kept.put("d", "x")
    assert [kept.get(key) for key in "abcd"] == ["x", None, "x", "x"]
    kept.put("e", "too long by itself")
    assert [kept.get(key) for key in "acde"] == [None, None, None, "too long by itself"]


def test_the_server_answers_other_requests_while_a_film_is_encoded(shared_room, monkeypatch):
    film, study = shared_room.film(seed=300), shared_room.study()
    begun, go_on = threading.Event(), threading.Event()

    def stuck(_encoder, _name, reader, prepared):
        begun.set()
        assert go_on.wait(30)
        return reader.encode([prepared])[0]

    monkeypatch.setattr(Encoder, "encode", stuck)
    shared_room.room.features.drop(_content(shared_room, film))
    shared_room.client.app.state.services.studies.forget(film)
    with ThreadPoolExecutor(1) as other:
        opening = other.submit(shared_room.study, "rolf", film)
        assert begun.wait(30)
        assert shared_room.get(None, "/health").status_code == 200
        assert shared_room.get("rita", f"/studies/{study['id']}").status_code == 200
        assert not opening.done()
        go_on.set()
        assert opening.result()["revision"] == 0


def _content(room, film):
    with room.room.database.reading() as session:
        return session.get(FilmRow, film).content
