import hashlib
import math
import os
import subprocess
import sys

import pytest
import torch

from medgrape.concepts import ConceptSet
from medgrape.vocabulary.encoders import TextEncoderError
from medgrape.vocabulary.encoders.lexical import LexicalEncoder

SENTENCES = ["Fluid in the pleural space.", "A cavity, a cavity, a cavity!", "Höhle im Oberlappen", "结核空洞"]
FINGERPRINT = """
import hashlib, sys
from medgrape.config import TextSettings
from medgrape.vocabulary.encoders import open_text_encoder
vectors = open_text_encoder(TextSettings(encoder="lexical")).encode(sys.argv[1:])
print(hashlib.sha256(vectors.numpy().tobytes()).hexdigest(), "transformers" in sys.modules)
"""
SAME_FINDING = {"effusion": "pleural_effusion", "fibrosis": "pulmonary_fibrosis", "mass": "nodule_mass"}


@pytest.fixture(scope="module")
def encoder():
    return LexicalEncoder()


def descriptions(vocabulary):
    return [concept.description for concept in ConceptSet.built_in(vocabulary)]


@pytest.fixture(scope="module")
def elsewhere():
    """The vectors' fingerprint in another process with another seed for Python's own hashes, and what it imported."""
    command = [sys.executable, "-c", FINGERPRINT, *SENTENCES]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_another_process_gives_the_same_vectors(encoder, elsewhere):
    assert elsewhere[0] == hashlib.sha256(encoder.encode(SENTENCES).numpy().tobytes()).hexdigest()


def test_whoever_needs_no_model_does_not_wait_for_transformers(elsewhere):
    assert elsewhere[1] == "False"


def test_a_finding_is_closest_to_the_same_finding_of_another_vocabulary(encoder):
    nih, vindr = ConceptSet.built_in("nih"), ConceptSet.built_in("vindr")
    likeness = encoder.encode(descriptions("nih")) @ encoder.encode(descriptions("vindr")).T
    names = [SAME_FINDING.get(name, name) for name in nih.names]
    shared = [(row, vindr.index(name)) for row, name in enumerate(names) if name in vindr]

    assert len(shared) >= 10
    for row, twin in shared:
        assert likeness[row].argmax() == twin, nih.names[row]


def test_each_tuberculosis_is_closest_to_another_tuberculosis(encoder):
    everything = encoder.encode([*descriptions("tbx11k"), *descriptions("nih")])
    likeness = everything @ everything.T
    likeness.fill_diagonal_(-1)
    assert set(likeness[:3].argmax(dim=1).tolist()) <= {0, 1, 2}


def test_a_plural_is_close_to_its_singular_and_a_synonym_is_not(encoder):
    cavity, cavities, lucency = encoder.encode(["cavity", "cavities", "lucency"])
    assert cavity @ cavities > 0.3
    assert abs(cavity @ lucency) < 0.2


def test_case_and_punctuation_do_not_matter_and_words_do(encoder):
    loud, quiet, other = encoder.encode(["PLEURAL, effusion!", "pleural effusion", "pleural thickening"])
    assert torch.equal(loud, quiet)
    assert not torch.equal(quiet, other)


def test_a_word_said_eight_times_counts_three_times(encoder):
    opaque, scar, *sentences = encoder.encode(["opaque", "scar", "opaque scar", "opaque " * 8 + "scar"])
    once, eight_times = (float(sentence @ opaque) / float(sentence @ scar) for sentence in sentences)
    assert eight_times / once == pytest.approx(1 + math.log(8), rel=1e-4)


def test_stop_words_are_ignored_and_negations_are_not(encoder):
    plain, wordy, denied = encoder.encode(["cavity apex", "The cavity is in the apex of a", "no cavity apex"])
    assert torch.equal(plain, wordy)
    assert not torch.equal(plain, denied)


def test_unrelated_words_are_at_right_angles_on_average(encoder):
    """The sign of the hash: without it every pair of sentences would look a little alike."""
    words = [hashlib.md5(bytes([number]), usedforsecurity=False).hexdigest() for number in range(60)]
    likeness = encoder.encode(words) @ encoder.encode(words).T
    others = likeness[~torch.eye(60, dtype=torch.bool)]
    assert abs(float(others.mean())) < 0.02
    assert float(others.min()) < -0.05


@pytest.mark.parametrize("nothing", ["", "  ", "...", "_", "Of the"])
def test_a_sentence_without_words_is_refused(encoder, nothing):
    with pytest.raises(TextEncoderError, match="no words to compare; describe the finding"):
        encoder.encode(["A cavity.", nothing])


def test_a_single_letter_or_digit_has_a_vector(encoder):
    letters = encoder.encode(list("bcdefghijklmnopqrstuvwxyz0123456789"))
    torch.testing.assert_close(letters.norm(dim=-1), torch.ones(35))


def test_its_note_says_that_it_compares_words_not_meanings(encoder):
    assert "words, not meanings" in encoder.note
    assert "lexical" in encoder.name
    assert encoder.width == 768
