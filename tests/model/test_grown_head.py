import pytest
import torch

from medgrape.concepts import Concept
from medgrape.model.grape import GrownHead, head_sizes
from medgrape.model.graph import ConceptGraph
from medgrape.model.heads import build_head
from medgrape.reader import Reader, load
from medgrape.runs.checkpoint import load_run

KINDS = ["gat", "linear", "mlp", "ml-gcn", "add-gcn"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_grown_head_gives_the_same_classes_until_it_is_trained(kind):
    torch.manual_seed(0)
    old = build_head(kind, 3, 5, 2, dropout=0.1).eval()
    before = ConceptGraph(torch.rand(3, 3), 0.1)
    grown = GrownHead(old, before, build_head(kind, 4, 5, 2, dropout=0.1)).eval()
    every, films = ConceptGraph(torch.rand(4, 4), 0.1), torch.randn(6, 4, 5)

    assert torch.equal(grown(films, every), old(films[:, :3].contiguous(), before))
    attention = grown.classify(films, every).attention
    if attention is not None:
        assert torch.equal(attention[:, :3, :3], old.classify(films[:, :3].contiguous(), before).attention)
        assert torch.equal(attention[:, 3], torch.eye(4)[3].expand(6, 4))

    grown(films, every).sum().backward()
    weights = [layer for layer in grown.added.modules() if isinstance(layer, torch.nn.Linear)][-1].weight
    assert weights.grad is not None
    assert weights.grad.any()  # silent, and yet it can learn


def test_a_run_that_grew_twice_and_lost_a_prototype_is_the_same_after_saving(trained_run, tmp_path):
    reader: Reader = load(trained_run)
    for name in ("cavity", "nodule"):
        reader = reader.learn(name, f"A {name} in the lung.").grow_head()
    reader = reader.discard("cavity", [0])

    saved = reader.save(tmp_path / "grown").loaded.run

    assert head_sizes(saved.model.head, saved.model.head_concepts) == [3, 4, 5]
    films = torch.rand(2, 1, 64, 64)
    with torch.no_grad():
        (here, maps), (there, same) = (run.model.predict_with_all_maps(films) for run in (reader.loaded.run, saved))
        first = load_run(trained_run).run.model(films)
    assert torch.equal(here.logits, there.logits)
    assert torch.equal(maps.mean, same.mean)
    assert torch.equal(here.logits, first.logits)
    assert [change.what.split()[0] for change in saved.changes] == ["Learnt", "Let", "Learnt", "Let", "Discarded"]
    assert {change.parent for change in saved.changes} == {load_run(trained_run).manifest.fingerprint}


def test_no_concept_is_called_by_the_word_for_all_of_them():
    with pytest.raises(Exception, match="all concepts"):
        Concept("all", "All", "Everything.")
