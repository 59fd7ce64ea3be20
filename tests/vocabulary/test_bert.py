import json
import pickle
from importlib import import_module

import pytest
import torch
from tiny_encoders import SENTENCES, TINY, Scene, scene
from torch.nn.functional import normalize

from medgrape.vocabulary.encoders import TextEncoderError
from medgrape.vocabulary.encoders.bert import load_bert

CAVITY = ("a", "cavity", "in", "the", "apex", "of", "the", "left", "lung", ".")


def loaded(made: Scene):
    return load_bert(made.folder, "tiny", "For tests.")


def test_a_biovil_t_sentence_is_the_cls_state_of_its_bert(like_biovil_t):
    expected = [like_biovil_t.states(*words)[0] for words in (CAVITY, ("scar", "##s", "."), ("the", "right", "lung"))]
    torch.testing.assert_close(
        loaded(like_biovil_t).encode(SENTENCES), normalize(torch.stack(expected), dim=-1), atol=1e-5, rtol=0
    )


def test_a_sentence_encoder_is_the_mean_over_its_tokens(sentence_encoder):
    expected = [sentence_encoder.states(*words).mean(dim=0) for words in (CAVITY, ("scar", "##s", "."))]
    torch.testing.assert_close(
        loaded(sentence_encoder).encode(SENTENCES[:2]), normalize(torch.stack(expected), dim=-1), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    ("settings", "token_mean"),
    [
        ({"pooling_mode": "mean"}, True),
        ({"pooling_mode": "cls"}, False),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, False),
    ],
)
def test_the_pooling_is_the_one_that_the_folder_names(sentence_encoder, settings, token_mean):
    sentence_encoder.write("1_Pooling/config.json", settings | {"embedding_dimension": 16})
    states = sentence_encoder.states("the", "lung")
    expected = normalize(states.mean(dim=0) if token_mean else states[0], dim=-1)
    torch.testing.assert_close(loaded(sentence_encoder).encode(["The lung"])[0], expected, atol=1e-5, rtol=0)


def test_the_sentences_beside_it_do_not_move_a_sentence(like_biovil_t, sentence_encoder):
    many = [*SENTENCES] * 12  # more than fit in one batch
    for encoder in (loaded(like_biovil_t), loaded(sentence_encoder)):
        alone = torch.cat([encoder.encode([sentence]) for sentence in SENTENCES])
        torch.testing.assert_close(encoder.encode(many), alone.repeat(12, 1), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("kind", "unread"),
    [("BertModel", 0), ("DistilBertModel", 0), ("RobertaModel", 1), ("XLMRobertaModel", 1), ("MPNetModel", 2)],
)
def test_every_family_is_read_to_its_last_position_and_not_beyond(tmp_path, kind, unread):
    made = scene(tmp_path / "family", kind, pad_token_id=0)
    encoder = loaded(made)
    words = ("lung",) * (encoder.longest - 2)  # [CLS] and [SEP] are tokens too

    expected = normalize(made.states(*words)[0], dim=-1)
    torch.testing.assert_close(encoder.encode([" ".join(words)])[0], expected, atol=1e-5, rtol=0)
    assert encoder.longest == TINY["max_position_embeddings"] - unread
    with pytest.raises(TextEncoderError, match=r"too long for tiny.*shorten"):
        encoder.encode([" ".join((*words, "lung"))])


def test_a_folder_may_read_less_than_its_network_could(sentence_encoder):
    assert loaded(sentence_encoder).longest == 12


def test_a_sentence_of_unknown_words_is_refused(plain_bert):
    encoder = loaded(plain_bert)
    assert encoder.encode(["Pneumothorax of the lung"]).shape == (1, 16)
    for unknown in ("pneumothorax", "", "Milzruptur!"):
        with pytest.raises(TextEncoderError, match=r"knows no word of .* other words"):
            encoder.encode(["A lung", unknown])


def test_loading_prints_nothing_and_does_not_change_logging_or_the_random_state(like_biovil_t, capfd):
    logging = import_module("transformers").utils.logging
    before, chance = (logging.get_verbosity(), logging.is_progress_bar_enabled()), torch.get_rng_state()
    loaded(like_biovil_t).encode(SENTENCES)

    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert torch.equal(torch.get_rng_state(), chance)


def test_half_precision_weights_are_computed_with_in_single(like_biovil_t):
    like_biovil_t.change_weights(lambda tensors: tensors.update({k: v.half() for k, v in tensors.items()}))
    vectors = loaded(like_biovil_t).encode(SENTENCES)
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors.norm(dim=-1), torch.ones(3))


def test_weights_in_torchs_own_format_are_read_too(like_biovil_t):
    expected = loaded(like_biovil_t).encode(SENTENCES)
    tensors = {f"bert.{name}": tensor for name, tensor in like_biovil_t.trunk.state_dict().items()}
    like_biovil_t.weights.unlink()
    torch.save(tensors, like_biovil_t.folder / "pytorch_model.bin")
    assert torch.equal(loaded(like_biovil_t).encode(SENTENCES), expected)


class Burglar:
    def __init__(self, loot):
        self.loot = loot

    def __reduce__(self):
        return open, (self.loot, "w")


def test_code_inside_a_weights_file_is_refused_and_never_run(like_biovil_t, tmp_path):
    like_biovil_t.weights.unlink()
    torch.save({"bert.x": Burglar(str(tmp_path / "loot"))}, like_biovil_t.folder / "pytorch_model.bin")
    with pytest.raises(TextEncoderError, match=r"cannot be loaded.*copy the folder again"):
        loaded(like_biovil_t)
    assert not (tmp_path / "loot").exists()
    pickle.loads(pickle.dumps(Burglar(str(tmp_path / "loot")))).close()  # noqa: S301 - it would have worked
    assert (tmp_path / "loot").exists()


LAST = "bert.encoder.layer.1.output.dense.weight"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda tensors: tensors.pop(LAST), rf"lacks {LAST[5:]} of its trunk"),
        (lambda tensors: tensors.update({LAST.replace("1", "2"): torch.ones(16, 32)}), "holds encoder.layer.2.output"),
        (lambda tensors: tensors.update({LAST: torch.ones(16, 31)}), f"holds {LAST[5:]}, which its config.json"),
        (lambda tensors: tensors.update({"adapter.weight": torch.ones(2)}), "holds adapter.weight"),
        (lambda tensors: tensors.clear(), "lacks embeddings.*, .*, .* and [0-9]+ more tensors"),
    ],
)
def test_weights_that_are_not_exactly_the_trunk_are_refused_by_name(like_biovil_t, change, complaint):
    like_biovil_t.change_weights(change)
    with pytest.raises(TextEncoderError, match=complaint):
        loaded(like_biovil_t)


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "config.json"])
def test_a_damaged_or_missing_file_is_an_error_that_says_what_to_do(like_biovil_t, name):
    path = like_biovil_t.folder / name
    path.write_bytes(b"\xff" + path.read_bytes()[:40])
    with pytest.raises(TextEncoderError, match=r"copy the folder again"):
        loaded(like_biovil_t)
    path.unlink()
    with pytest.raises(TextEncoderError, match=r"copy|text\.encoder"):
        loaded(like_biovil_t)


@pytest.mark.parametrize(
    ("name", "table", "complaint"),
    [
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "max"]}, "pools by cls and max"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pools by max"),
        ("1_Pooling/config.json", {}, "pools by nothing"),
        (
            "modules.json",
            [{"type": "x.Transformer", "path": ""}, {"type": "x.Dense", "path": "d"}],
            "Transformer, Dense",
        ),
        ("modules.json", [{"path": ""}], "modules.json is damaged"),
        ("modules.json", {"type": "x"}, "modules.json is damaged"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "puts a prompt"),
        ("config.json", {"model_type": "gpt2"}, "of the family 'gpt2'.*lexical"),
        ("config.json", [], "config.json is damaged"),
        ("config.json", TINY | {"model_type": "bert", "vocab_size": 5}, "more words than its network"),
    ],
)
def test_a_folder_that_asks_for_more_than_is_built_is_refused(sentence_encoder, name, table, complaint):
    sentence_encoder.write(name, table)
    with pytest.raises(TextEncoderError, match=complaint):
        loaded(sentence_encoder)


def test_a_folder_that_asks_for_lower_case_gets_it(sentence_encoder):
    sentence_encoder.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": False})
    with pytest.raises(TextEncoderError, match="knows no word"):
        loaded(sentence_encoder).encode(["LUNG"])
    settings = json.loads((sentence_encoder.folder / "sentence_bert_config.json").read_text())
    sentence_encoder.write("sentence_bert_config.json", settings | {"do_lower_case": True})
    assert loaded(sentence_encoder).encode(["LUNG"]).shape == (1, 16)
