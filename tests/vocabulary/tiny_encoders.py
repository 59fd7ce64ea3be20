"""Sentence encoders of sixteen numbers a word, each in a folder as it comes from its makers."""

import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (*SPECIAL, "a", "in", "of", "the", "cavity", "lung", "apex", "left", "right", "scar", "##s", ".")
SENTENCES = ("A cavity in the apex of the left lung.", "Scars.", "The right lung")
TINY = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 20,
}


@dataclass(frozen=True)
class Scene:
    """A folder, and the network that was written into it."""

    folder: Path
    trunk: torch.nn.Module

    @property
    def weights(self) -> Path:
        return self.folder / "model.safetensors"

    def states(self, *words: str) -> torch.Tensor:
        """The last layer for one sentence, given word for word, alone and without padding."""
        tokens = torch.tensor([[WORDS.index(word) for word in ("[CLS]", *words, "[SEP]")]])
        with torch.no_grad():
            return self.trunk(tokens).last_hidden_state[0]

    def change_weights(self, change) -> None:
        tensors = load_file(self.weights)
        change(tensors)
        save_file(tensors, self.weights, metadata={"format": "pt"})

    def write(self, name: str, table: object) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(table))


def scene(folder: Path, kind: str, *, prefix: str = "", extra=None, **config) -> Scene:
    family = getattr(import_module("transformers"), kind)
    settings = family.config_class(**TINY | config)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        made = Scene(folder, family(settings, **{} if "Distil" in kind else {"add_pooling_layer": False}).eval())
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    made.write("config.json", settings.to_dict() | {"architectures": [kind]})
    made.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    tensors = {f"{prefix}{name}": tensor for name, tensor in made.trunk.state_dict().items()}
    save_file(tensors | (extra or {}), made.weights, metadata={"format": "pt"})
    return made
