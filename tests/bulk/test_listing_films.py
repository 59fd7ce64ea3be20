"""Which films are meant by what somebody typed."""

import json
from pathlib import Path

import fsspec
import pytest

from medgrape.bulk.results import list_films, part_size
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from scenes import radiograph, save


def listed(*places, path):
    listing = list_films([str(place) for place in places], path / "films.jsonl")
    names = [json.loads(line)[0] for line in listing.path.read_text().splitlines()]
    assert listing.films == len(names)
    return names


def test_films_in_a_folder_are_found_by_suffix_or_first_bytes(films_folder, tmp_path, chest):
    deep = films_folder / "b" / "c"
    deep.mkdir(parents=True)
    save(radiograph(chest), deep / "IM0001")
    save(radiograph(chest), deep / "1.2.840.10008")
    (deep / "notes.md").write_text("no film")
    (deep / "README").write_text("no film either")
    found = [Path(name).relative_to(films_folder).as_posix() for name in listed(films_folder, path=tmp_path)]
    assert found == ["b/c/1.2.840.10008", "b/c/IM0001", *(f"film{number}.png" for number in range(8))]


def test_a_film_that_is_listed_twice_counts_once_and_the_first_spelling_stays(films, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = listed("films/film1.png", films[1], "films", "./films/film1.png", path=tmp_path)
    assert names == ["films/film1.png", *(f"films/film{number}.png" for number in (0, 2, 3, 4, 5, 6, 7))]


def test_lists_keep_their_order_and_relative_paths_start_at_the_list(films, tmp_path):
    text, table = tmp_path / "some.txt", tmp_path / "some.csv"
    text.write_text(f"films/film3.png\n\n{films[1]}\nmemory://elsewhere/a.png\n", "utf-8-sig")
    table.write_text("id,path\n1,films/film2.png\n2,films/film0.png\n")
    names = listed(text, table, path=tmp_path)
    assert names == [str(films[3]), str(films[1]), "memory://elsewhere/a.png", str(films[2]), str(films[0])]


def test_a_prepared_data_set_is_read_in_its_own_order(drawn_dataset, tmp_path):
    dataset = Dataset.load(drawn_dataset)
    assert listed(drawn_dataset, path=tmp_path) == [str(dataset.film_path(film)) for film in dataset.pictured]


def test_folders_and_lists_in_storage_are_read_like_those_on_disk(films, tmp_path):
    storage = fsspec.filesystem("memory")
    for name in ("2.png", "deep/1.jpg", "notes.txt"):
        storage.pipe(f"/archive/{name}", films[0].read_bytes())
    storage.pipe("/lists/some.txt", b"a.png\nfile:///b.png\n")
    try:
        assert listed("memory://archive", path=tmp_path) == ["memory:///archive/2.png", "memory:///archive/deep/1.jpg"]
        assert listed("memory://lists/some.txt", path=tmp_path) == ["memory://lists/a.png", "file:///b.png"]
        assert listed(f"file://{films[0].parent}", path=tmp_path) == [f"file://{film}" for film in films]
    finally:
        storage.rm("/archive", recursive=True)
        storage.rm("/lists", recursive=True)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("memory://nowhere/at-all", "does not exist"),
        ("nostorage://x", "cannot be reached"),
        ("bad.csv", "column 'path'"),
    ],
)
def test_a_place_that_cannot_be_listed_gives_an_error_of_one_sentence(place, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("file\na.png\n")
    with pytest.raises(UserError, match=told):
        listed(place, path=tmp_path)


def test_a_file_name_with_invalid_text_is_listed(films, tmp_path):
    strange = films[0].with_name(b"caf\xe9.png".decode("utf-8", "surrogateescape"))
    films[0].rename(strange)
    assert listed(films[0].parent, path=tmp_path)[0] == str(strange)


@pytest.mark.parametrize(
    ("films", "workers", "part"), [(1, 2, 1), (3, 2, 2), (48, 2, 24), (128, 2, 32), (5000, 2, 80), (10**6, 8, 512)]
)
def test_workers_get_equally_many_parts_which_are_neither_tiny_nor_huge(films, workers, part):
    assert part_size(films, workers) == part
