from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from medgrape.concepts import ConceptSet
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.model.evidence import (
    Evidence,
    disagreement_maps,
    mean_maps,
    scores,
    similarity,
    strongest_maps,
)
from oracles import equations

K, M, D, H, W = 3, 4, 6, 2, 3


@pytest.fixture
def patches():
    return F.normalize(torch.randn(5, D, H, W, generator=torch.Generator().manual_seed(1)), dim=1)


@pytest.fixture
def prototypes():
    return F.normalize(torch.randn(K, M, D, generator=torch.Generator().manual_seed(2)), dim=-1)


@pytest.fixture
def evidence(patches, prototypes):
    return Evidence(
        ConceptSet.built_in("tbx11k"), PatchGrid(FilmSize(90, 60), H, W), similarity(patches[0], prototypes)
    )


def test_similarity_is_the_cosine_of_every_patch_with_every_prototype(patches, prototypes):
    slow = torch.tensor(equations.similarity_map(prototypes.tolist(), patches[0].tolist()))
    torch.testing.assert_close(similarity(patches[0], prototypes), slow, atol=1e-6, rtol=0)


@pytest.mark.parametrize("curated", [False, True], ids=["all prototypes", "some discarded"])
def test_maps_of_corrected_evidence_are_to_the_last_bit_those_worked_out_from_scratch(evidence, curated):
    kept = torch.tensor([[True, False, True, True]] * K) if curated else None
    seen = replace(evidence, kept=kept)
    corrected = seen.revised({1: seen.similarity[1] / 3}).revised({2: -seen.similarity[2]})
    afresh = replace(corrected, revised_from=None)
    for name in ("mean", "disagreement", "strongest", "scores"):
        assert torch.equal(getattr(corrected, name), getattr(afresh, name))
    assert torch.equal(corrected.mean[0], seen.mean[0])
    assert not torch.equal(corrected.mean[1], seen.mean[1])


def test_mean_disagreement_and_scores_follow_the_paper(evidence):
    for k in range(K):
        maps = evidence.similarity[k].tolist()
        for i in range(H):
            for j in range(W):
                assert float(evidence.mean[k, i, j]) == pytest.approx(equations.mean_map(maps, i, j), abs=1e-6)
                slow = equations.variance_map(maps, i, j)
                assert float(evidence.disagreement[k, i, j]) == pytest.approx(slow, abs=1e-6)
        assert evidence.scores[k].tolist() == pytest.approx([equations.score(map_) for map_ in maps], abs=1e-6)


def test_a_batch_gives_the_same_results_as_single_films(patches, prototypes):
    alone = [similarity(film, prototypes) for film in patches]
    together = {
        mean_maps: lambda s: s.mean(dim=1),
        disagreement_maps: lambda s: s.var(dim=1, correction=0),
        strongest_maps: lambda s: s.amax(dim=1),
        scores: lambda s: s.amax(dim=(-2, -1)),
    }
    for fast, slow in together.items():
        torch.testing.assert_close(
            fast(patches, prototypes), torch.stack([slow(s) for s in alone]), atol=1e-6, rtol=1e-5
        )


class _Largest(TorchDispatchMode):
    """Remembers the most numbers that any operation gave back."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return out


@pytest.mark.parametrize("asked", [mean_maps, disagreement_maps, strongest_maps, scores])
def test_no_tensor_of_all_films_concepts_prototypes_and_patches_is_ever_held(asked):
    batch, concepts, prototypes, width, side = 4, 14, 100, 8, 7
    patches = F.normalize(torch.randn(batch, width, side, side), dim=1)
    atlas = F.normalize(torch.randn(concepts, prototypes, width), dim=-1)
    with _Largest() as largest:
        asked(patches, atlas)
    assert largest.numbers <= batch * concepts * prototypes * side * side / concepts
