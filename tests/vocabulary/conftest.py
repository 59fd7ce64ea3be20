"""Scenes of the vocabulary's tests."""

import json

import pytest
import torch
from tiny_encoders import WORDS, Scene, scene


@pytest.fixture
def plain_bert(tmp_path) -> Scene:
    return scene(tmp_path / "plain", "BertModel")


@pytest.fixture
def like_biovil_t(tmp_path) -> Scene:
    """A BERT under two heads, with settings and a tokenizer that name code of their own."""
    heads = {
        "cls.predictions.bias": torch.zeros(len(WORDS)),
        "cls_projection_head.dense_to_hidden.weight": torch.ones(8, 16),
        "bert.embeddings.position_ids": torch.arange(20)[None],
    }
    made = scene(tmp_path / "biovil", "BertModel", prefix="bert.", extra=heads)
    code = {"AutoConfig": "configuration_cxrbert.CXRBertConfig", "AutoModel": "modeling_cxrbert.CXRBertModel"}
    config = json.loads((made.folder / "config.json").read_text())
    made.write("config.json", config | {"architectures": ["CXRBertModel"], "model_type": "cxr-bert", "auto_map": code})
    tokenizer = {"AutoTokenizer": ["configuration_cxrbert.CXRBertTokenizer", None]}
    made.write("tokenizer_config.json", {"tokenizer_class": "CXRBertTokenizer", "auto_map": tokenizer})
    return made


@pytest.fixture
def sentence_encoder(tmp_path) -> Scene:
    """As sentence-transformers writes one: a list of steps, and the mean over all tokens."""
    made = scene(tmp_path / "sentences", "BertModel")
    steps = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    made.write("modules.json", [{"path": path, "type": f"sentence_transformers.models.{step}"} for path, step in steps])
    made.write("1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True})
    made.write("sentence_bert_config.json", {"max_seq_length": 12, "do_lower_case": False})
    return made
