"""Parts of other packages: found by entry points, held to their contract, named in the run."""

import json

import numpy as np
import pytest
import torch
from typer.main import get_command

from medgrape.cli.app import app
from medgrape.config import BackboneSettings, TextSettings
from medgrape.datasets.sources import read_with_plugin
from medgrape.errors import UserError
from medgrape.model.backbones import build_backbone, lite, resnet
from medgrape.model.backbones.base import BackboneError
from medgrape.model.heads import build_head
from medgrape.plugins import GROUPS, PluginError, built_in, find_plugin, find_recorded_plugin, get, offered
from medgrape.vocabulary.encoders import TextEncoderError, open_text_encoder
from own_packages import on_path, written


def made(kind, name, folder, **named):
    """Ask for a part in the way that each kind is asked for."""
    if kind == "source":
        return read_with_plugin(name, folder, {})
    if kind == "backbone":
        return build_backbone(BackboneSettings(name=name, pretrained=False, **named)).grid(64)
    if kind == "text encoder":
        return open_text_encoder(TextSettings(encoder=name))
    return build_head(name, 3, 4, 2, 0.1)


def installed(folder, kind, code, name="mine", package="clinic", version="1.0"):
    return on_path(written(folder / package, package, {GROUPS[kind]: {name: f"{package}:part"}}, code, version))


def test_the_built_in_parts_are_the_registered_ones():
    commands = set(get_command(app).commands["data"].commands["prepare"].commands)
    assert set(built_in("source")) == commands - {"own"}
    for head in built_in("head"):
        assert type(build_head(head, 3, 4, 2, 0.1)).__module__.startswith("medgrape.model.heads.")
    assert open_text_encoder(TextSettings(encoder="none")) is None
    assert set(built_in("backbone")) == {lite.NAME, *resnet.ARCHITECTURES}


@pytest.mark.parametrize("kind", list(GROUPS))
def test_a_plugin_cannot_have_the_name_of_a_built_in_part(kind, tmp_path):
    taken = next(iter(built_in(kind)))
    with installed(tmp_path, kind, "raise SystemExit('this must never be imported')", name=taken):
        usable, refused = offered(kind)
        assert usable == []
        assert [(refusal.part.name, refusal.part.distribution) for refusal in refused] == [(taken, "clinic")]
        assert "needs another name" in refused[0].reason
        assert find_plugin(kind, taken) is None


@pytest.mark.parametrize("name", ["Mine", "../mine", "org/mine", ".mine"])
def test_a_name_that_could_be_a_path_or_a_hub_repository_is_refused(name, tmp_path):
    with installed(tmp_path, "head", "", name=name):
        assert offered("head")[0] == []
        assert find_plugin("head", name) is None


def test_two_packages_with_one_name_are_both_refused(tmp_path):
    clinic, lab = (installed(tmp_path, "head", "", package=package) for package in ("clinic", "lab"))
    with clinic, lab, pytest.raises(PluginError, match="several packages have that name"):
        get("head", "mine")


def test_a_mistyped_name_gets_the_nearest_one_also_of_another_package(tmp_path):
    with (
        installed(tmp_path, "head", "", name="votes"),
        pytest.raises(PluginError, match=r"no head 'vote' \(did you mean 'votes'\?\)"),
    ):
        build_head("vote", 3, 4, 2, 0.1)
    with (
        installed(tmp_path / "2", "backbone", "", name="pocketnet"),
        pytest.raises(BackboneError, match=r"did you mean 'pocketnet'\?"),
    ):
        build_backbone(BackboneSettings(name="pocketnett"))
    with (
        installed(tmp_path / "3", "text encoder", "", name="synonyms"),
        pytest.raises(TextEncoderError, match=r"did you mean 'synonyms'\?"),
    ):
        open_text_encoder(TextSettings(encoder="synonym"))
    with (
        installed(tmp_path / "4", "source", "", name="folders"),
        pytest.raises(PluginError, match=r"did you mean 'folders'\?"),
    ):
        read_with_plugin("folder", tmp_path, {})


@pytest.mark.parametrize("kind", list(GROUPS))
def test_a_part_whose_import_fails_is_one_sentence_that_names_the_package(kind, tmp_path):
    with installed(tmp_path, kind, "import a_module_that_nobody_has"), pytest.raises(PluginError) as error:
        made(kind, "mine", tmp_path)
    message = str(error.value)
    assert message.startswith(f"The {kind} 'mine' of clinic 1.0 cannot be imported (ModuleNotFoundError")
    assert message.endswith("fix or reinstall clinic.")
    assert "\n" not in message


@pytest.mark.parametrize("kind", list(GROUPS))
def test_a_part_that_fails_when_called_is_one_sentence(kind, tmp_path):
    with (
        installed(tmp_path, kind, "def part(*given, **named):\n    raise ZeroDivisionError('oh')"),
        pytest.raises(PluginError, match=r"failed \(ZeroDivisionError: oh\)"),
    ):
        made(kind, "mine", tmp_path)


HEAD = """
import torch
from torch import nn
class part(nn.Module):
    def __init__(self, concepts, prototypes, classes, dropout):
        super().__init__()
        self.classes = classes
    def forward(self, scores, graph):
        return {logits}
"""
BACKBONE = """
import torch
from torch import nn
from medgrape.model.backbones.base import Chain, Greys
from medgrape.model.backbones.base import PluginBackbone
class Noise(nn.Module):
    def forward(self, films):
        return films + torch.rand_like(films)
def part(*, pretrained):
    return {made}
"""
ENCODER = """
import torch
class part:
    name, note, width = "mine", "worth little", 4
    def encode(self, sentences):
        return {vectors}
"""
SOURCE = """
from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.dataset import DrawnBox, FilmRecord
from medgrape.datasets.draft import Draft
from medgrape.geometry import Box, FilmSize
def part(folder):
    draft = Draft("mine", "x", folder, ("ill",), ConceptSet((Concept.named("cavity"),)))
    {fill}
    return {made}
"""


def film_with(otherwise):
    """A source whose only film is as it should be, but for this, past the type checks that only tests have."""
    film = "film = FilmRecord('a', '', 'ill', 'p', FilmSize(4, 4), {'cavity': None})"
    fill = f"{film}; vars(film).update({otherwise}); draft.films.append(film)"
    return SOURCE.format(fill=fill, made="draft")


def backbone_with(otherwise):
    """A backbone as it should be, but for this."""
    sound = "PluginBackbone(Chain([nn.Conv2d(1, 5, 3)], 5), Greys((0.5,), (0.5,)))"
    return BACKBONE.format(made=f"(lambda made: ({otherwise}, made)[1])({sound})")


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("head", HEAD.format(logits="torch.zeros(len(scores), self.classes + 1)"), r"shape \(2, 3\)"),
        ("head", HEAD.format(logits="torch.full((len(scores), self.classes), torch.nan)"), "not finite numbers"),
        ("head", HEAD.format(logits="torch.rand(len(scores), self.classes)"), "different logits for the same scores"),
        ("head", HEAD.format(logits="scores @ torch.ones(9)"), "fails on scores of 3 concepts"),
        ("head", "part = dict", "returned a dict, not a torch module"),
        ("head", "part = 7", "is not callable"),
        ("backbone", BACKBONE.format(made="nn.Identity()"), "returned a Identity, not a PluginBackbone"),
        (
            "backbone",
            BACKBONE.format(made="PluginBackbone(Chain([nn.Conv2d(1, 5, 3)], 6), Greys((0.5,), (0.5,)))"),
            r"returns \(2, 5, 62, 62\) for two films, not \(2, 6, height, width\)",
        ),
        (
            "backbone",
            BACKBONE.format(made="PluginBackbone(Chain([nn.Conv2d(3, 5, 3)], 5), Greys((0.5,), (0.5,)))"),
            "fails on films of 64 x 64 pixels",
        ),
        (
            "backbone",
            BACKBONE.format(made="PluginBackbone(Chain([Noise()], 1), Greys((0.5,), (0.5,)))"),
            "other maps each time",
        ),
        ("backbone", BACKBONE.format(made="PluginBackbone(Chain([], 1), Greys((0.5,), (0.5,)))"), "than torch modules"),
        (
            "backbone",
            backbone_with("vars(made).update(chain=nn.Sequential(nn.Conv2d(1, 5, 3)))"),
            "of Sequential and Greys, not of Chain and Greys",
        ),
        ("backbone", backbone_with("vars(made).update(greys=None)"), "of Chain and NoneType, not of Chain and Greys"),
        ("backbone", backbone_with("vars(made.chain).update(parts=7)"), "something else than torch modules"),
        ("backbone", backbone_with("vars(made.chain).update(features='5')"), "chain whose features is '5'"),
        ("text encoder", ENCODER.format(vectors="[][0]"), r"fails on 2 sentences \(IndexError"),
        ("text encoder", ENCODER.format(vectors="torch.ones(len(sentences), 4)"), "of length 2, not unit vectors"),
        ("text encoder", ENCODER.format(vectors="torch.eye(5)[:len(sentences)]"), r"shape \(2, 5\)"),
        ("text encoder", ENCODER.format(vectors="[1.0]"), "as list, not as a tensor"),
        (
            "text encoder",
            ENCODER.format(vectors="torch.nn.functional.normalize(torch.randn(len(sentences), 4))"),
            "different vectors for the same sentence",
        ),
        ("text encoder", ENCODER.format(vectors="torch.eye(4)[[0] * len(sentences)]"), "for different sentences"),
        ("text encoder", "class part:\n    width = 4", "has no 'name'"),
        ("source", SOURCE.format(fill="", made="draft.films"), "made a list, not a Draft"),
        (
            "source",
            SOURCE.format(fill="draft.films.append(FilmRecord('a', '', 'ill', 'p', FilmSize(4, 4), {}))", made="draft"),
            "says nothing of 'cavity' on 'a'",
        ),
        (
            "source",
            SOURCE.format(
                fill="draft.films.append(FilmRecord('a', '', 'odd', 'p', FilmSize(4, 4), {'cavity': None}))",
                made="draft",
            ),
            "which is none of its classes",
        ),
        ("source", "part = dict", "has no signature that can be inspected"),
        ("source", film_with("labels={'cavity': 'yes'}"), "says 'yes' of 'cavity' on 'a', not True, False or None"),
        ("source", film_with("labels=None"), "something else than films, boxes"),
        ("source", film_with("size=None"), "gives 'a' the size None"),
        ("source", film_with("path='/etc/hostname'"), r"'/etc/hostname', which is no path from .* that stays in it"),
        ("source", film_with("path='../film.png'"), r"'../film.png', which is no path from .* that stays in it"),
        ("source", film_with("id=''"), "gives a film the id ''"),
        ("source", film_with("id=7"), "gives a film the id 7"),
        ("source", film_with("patient=''"), "gives a film the patient ''"),
        ("source", film_with("patient=7"), "gives a film the patient 7"),
        ("source", SOURCE.format(fill="draft.films.append('a')", made="draft"), "lists a str among its films"),
        ("source", SOURCE.format(fill="draft.boxes.append('a')", made="draft"), "lists a str among its boxes"),
        (
            "source",
            SOURCE.format(fill="draft.boxes.append(DrawnBox('a', 'cavity', Box(0, 0, 1, 1)))", made="draft"),
            "none of its films",
        ),
    ],
)  # fmt: skip
def test_a_part_that_breaks_its_contract_is_refused_by_name(kind, code, reason, tmp_path):
    with installed(tmp_path, kind, code), pytest.raises(PluginError, match=reason) as error:
        made(kind, "mine", tmp_path)
    assert "of clinic 1.0" in str(error.value)
    assert "this is for clinic to fix" in str(error.value) or "should be a function" in str(error.value)


def test_a_setting_that_a_backbone_does_not_take_is_an_error(tmp_path):
    code = BACKBONE.format(made="PluginBackbone(Chain([nn.Conv2d(1, 5, 3)], 5), Greys((0.5,), (0.5,)))")
    with installed(tmp_path, "backbone", code):
        assert made("backbone", "mine", None) == (62, 62)
        with pytest.raises(PluginError, match="takes no 'leave_off'"):
            made("backbone", "mine", None, leave_off=1)
        with pytest.raises(PluginError, match="takes no 'last_stride'"):
            made("backbone", "mine", None, last_stride=False)


def test_a_head_can_return_its_attention(tmp_path):
    code = HEAD.format(logits="scores.new_zeros(len(scores), self.classes)") + (
        "    def attention(self, scores, graph):\n        return graph.weights.expand(len(scores), -1, -1)\n"
    )
    with installed(tmp_path, "head", code):
        verdict = build_head("mine", 3, 4, 2, 0.1).classify(torch.rand(5, 3, 4), _graph())
    assert verdict.attention.shape == (5, 3, 3)


def _graph():
    from medgrape.model.graph import ConceptGraph

    return ConceptGraph(torch.ones(3, 3), 0.1)


def test_a_missing_part_of_a_run_is_named_by_package_and_version(tmp_path):
    record = {"name": "mine", "distribution": "clinic", "version": "1.0"}
    with pytest.raises(PluginError, match=r"not installed here: pip install clinic==1\.0$"):
        find_recorded_plugin("head", record)
    with installed(tmp_path, "head", "", package="lab"), pytest.raises(PluginError, match="another package, lab"):
        find_recorded_plugin("head", record)
    with installed(tmp_path / "2", "head", "", version="2.0"):
        assert find_recorded_plugin("head", record).version == "2.0"


def test_options_of_a_source_are_parsed_by_their_type(tmp_path):
    code = (
        "from pathlib import Path\n"
        "def part(folder, *, most: int = 3, deep: bool = False, beside: Path = Path(), called: str = ''):\n"
        "    raise ValueError(repr((most, deep, beside.name, called)))\n"
    )
    with installed(tmp_path, "source", code):
        with pytest.raises(PluginError, match=r"\(7, True, 'x.csv', 'a b'\)"):
            read_with_plugin("mine", tmp_path, {"most": "7", "deep": "yes", "beside": "/y/x.csv", "called": "a b"})
        with pytest.raises(UserError, match=r"has no option 'mots' \(did you mean 'most'\?\)"):
            read_with_plugin("mine", tmp_path, {"mots": "7"})
        with pytest.raises(UserError, match="--option most takes int, not 'many'"):
            read_with_plugin("mine", tmp_path, {"most": "many"})


@pytest.mark.parametrize("kind", ["int | None", "Optional[int]", "'int'", "int"])
@pytest.mark.parametrize("later", ["", "from __future__ import annotations\n"])
def test_an_option_has_its_type_however_it_is_annotated(tmp_path, kind, later):
    code = (
        f"{later}from typing import Optional\n"
        f"def part(folder, *, most: {kind} = 3, track: 'Track' = None):\n"
        "    raise ValueError(repr(most))\n"
    )
    with installed(tmp_path, "source", code):
        with pytest.raises(PluginError, match=r"ValueError: 7\)"):
            read_with_plugin("mine", tmp_path, {"most": "7"})
        with pytest.raises(UserError, match="--option most takes int, not 'many'"):
            read_with_plugin("mine", tmp_path, {"most": "many"})


@pytest.mark.parametrize("kind", ["list[int]", "int | str", "dict", "[]", "list[Path] | None"])
def test_an_option_with_an_unsupported_type_is_refused(tmp_path, kind):
    code = f"from pathlib import Path\ndef part(folder, *, most: {kind} = None):\n    raise ValueError('called')\n"
    with (
        installed(tmp_path, "source", code),
        pytest.raises(
            PluginError, match=r"has an option 'most' with an unsupported type; use bool.* this is for clinic to fix"
        ),
    ):
        read_with_plugin("mine", tmp_path, {"most": "7"})


def test_an_invalid_annotation_is_one_sentence(tmp_path):
    code = "from __future__ import annotations\ndef part(folder, *, most: Number = 3):\n    pass\n"
    with installed(tmp_path, "source", code), pytest.raises(PluginError, match=r"annotation .*'Number' is not defined"):
        read_with_plugin("mine", tmp_path, {"most": "7"})


@pytest.mark.parametrize(
    "code",
    [
        ENCODER.format(vectors="open('/nowhere')"),
        "class part:\n    name = note = width = encode = property(lambda self: 1 / 0)\n",
        "raise SystemExit(3)\n",
    ],
)
def test_a_part_that_fails_is_listed_among_the_others(tmp_path, capsys, code):
    sound = HEAD.format(logits="scores.new_zeros(len(scores), self.classes)")
    with installed(tmp_path, "text encoder", code), installed(tmp_path, "head", sound, name="sound", package="lab"):
        result = app(["parts", "--check", "--json"], standalone_mode=False)
    problems = {row["name"]: row["problem"] for row in json.loads(capsys.readouterr().out)["parts"]}
    assert result == 1
    assert problems["sound"] == ""
    assert "of clinic 1.0" in problems["mine"]
    assert problems["mine"].endswith("this is for clinic to fix.")
    assert set(problems) > {"lexical", "resnet-50", "coco", "gat"}


def test_no_part_is_imported_before_it_is_used(tmp_path, capsys):
    marker = tmp_path / "imported"
    code = f"from pathlib import Path\nPath({str(marker)!r}).touch()\npart = dict\n"
    with installed(tmp_path, "head", code):
        app(["parts", "--json"], standalone_mode=False)
        listed = json.loads(capsys.readouterr().out)["parts"]
        assert not marker.exists()
        code = app(["parts", "--check", "--json"], standalone_mode=False)
        checked = json.loads(capsys.readouterr().out)["parts"]
    assert marker.exists()
    assert code == 1
    row = {"kind": "head", "name": "mine", "from": "clinic", "version": "1.0"}
    assert row | {"problem": ""} in listed
    (refused,) = [row for row in checked if row["name"] == "mine"]
    assert "returned a dict, not a torch module" in refused["problem"]
    assert {row["name"] for row in listed if row["from"] == "medgrape"} >= {"gat", "lexical", "resnet-50", "coco"}
    assert np.all([row["problem"] == "" for row in listed])
