"""A person corrects a reading: new studies, and every old one as it was."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import medgrape as mg
from command_line import medgrape
from correcting_scenes import CONCEPTS, LEFT, RIGHT, boxes, cavity_left_effusion_right, study, untaught
from medgrape.cli.options import parse_box
from medgrape.concepts import ConceptError
from medgrape.corrections.statements import BoxCorrection, Rejection
from medgrape.datasets.dataset import Dataset
from medgrape.errors import UserError
from medgrape.geometry import Box, BoxOutsideError
from medgrape.runs.checkpoint import SafetyThresholds
from medgrape.study import ConceptMismatchError, NothingToUndoError

RUN = untaught()
steps = st.lists(
    st.one_of(
        st.builds(BoxCorrection, boxes(), st.sampled_from([*CONCEPTS.names, None]), st.booleans()),
        st.builds(Rejection, st.sampled_from([*CONCEPTS.names, None])),
    ),
    min_size=1,
    max_size=4,
)


def answer(one):
    """Everything that a study says, to the last bit."""
    output, seen = one.output, one.evidence
    tensors = (output.logits, output.scores, output.attention, seen.mean, seen.disagreement, seen.strongest)
    return [tensor.clone() for tensor in tensors]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_box_changes_prediction_maps_and_attention():
    before = study(RUN)
    after = before.apply(LEFT, "cavity").rule_out(RIGHT, "effusion")
    assert after.prediction != before.prediction
    assert not torch.equal(after.evidence.mean, before.evidence.mean)
    assert not torch.equal(after.output.attention, before.output.attention)
    assert sum(after.prediction.values()) == pytest.approx(1.0)


@given(steps)
@settings(deadline=None, max_examples=40)
def test_undo_restores_bit_identically_and_no_old_study_changes(corrections):
    history, report = [study(RUN)], []
    for correction in corrections:
        report.append(answer(history[-1]))
        history.append(history[-1].correct(correction, confirmed=True))
        answer(history[-1])
    assert all(same(answer(old), first) for old, first in zip(history[:-1], report, strict=True))
    undone = history[-1]
    for old in report[::-1]:
        undone = undone.undo()
        assert same(answer(undone), old)
        afresh = replace(study(RUN), corrections=undone.corrections)
        assert same(answer(afresh), old)
    with pytest.raises(NothingToUndoError, match="no correction to undo"):
        undone.undo()


@given(steps.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
@settings(deadline=None, max_examples=40)
def test_the_order_of_corrections_does_not_matter(both):
    first, second = (study(RUN).correct(*some, confirmed=True) for some in both)
    assert same(answer(first), answer(second))


def test_a_study_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        study(RUN).corrections = ()


def test_a_box_with_a_warning_is_refused_until_it_is_confirmed():
    opened = study(RUN)
    with pytest.raises(ConceptMismatchError, match=r"Pleural effusion leads over Cavity .* confirmed=True") as refused:
        opened.apply(RIGHT, "cavity")
    assert refused.value.check == opened.check(RIGHT, "cavity")
    assert opened.corrections == ()
    confirmed = opened.apply(RIGHT, "cavity", confirmed=True)
    assert confirmed.before is opened
    assert confirmed.log[0]["check"]["mismatch"] is True


def test_the_check_of_a_box_ignores_earlier_corrections():
    opened = study(RUN)
    persuaded = opened.rule_out(RIGHT, "effusion").rule_out(RIGHT, "nodule").reject("effusion")
    assert persuaded.check(RIGHT, "cavity") == opened.check(RIGHT, "cavity")
    with pytest.raises(ConceptMismatchError):
        persuaded.apply(RIGHT, "cavity")


def test_a_negative_box_and_a_box_for_every_concept_are_not_checked():
    corrected = study(RUN).rule_out(RIGHT, "cavity").rule_out(RIGHT).apply(RIGHT, None)
    assert [entry["check"] for entry in corrected.log] == [None, None, None]


def test_a_check_passed_in_by_the_caller_is_ignored():
    opened = study(RUN)
    agreed = opened.check(LEFT, "cavity")
    forged = BoxCorrection(RIGHT, "cavity", confirmed=True, check=agreed)
    with pytest.raises(ConceptMismatchError):
        opened.correct(forged)


def test_several_corrections_are_all_applied_or_none():
    opened = study(RUN)
    with pytest.raises(ConceptMismatchError):
        opened.correct(BoxCorrection(LEFT, "cavity"), BoxCorrection(RIGHT, "cavity"))
    assert opened.corrections == ()
    assert len(opened.correct(BoxCorrection(LEFT, "cavity"), Rejection("nodule")).corrections) == 2


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (lambda s: s.check(Box(300, 0, 400, 10), "cavity"), BoxOutsideError),
        (lambda s: s.apply(Box(300, 0, 400, 10), "cavity", confirmed=True), BoxOutsideError),
        (lambda s: s.apply(Box(300, 0, 400, 10), None), BoxOutsideError),
        (lambda s: s.rule_out(Box(300, 0, 400, 10)), BoxOutsideError),
        (lambda s: s.check(LEFT, "cavty"), ConceptError),
        (lambda s: s.apply(LEFT, "cavty"), ConceptError),
        (lambda s: s.rule_out(LEFT, "cavty"), ConceptError),
        (lambda s: s.reject("cavty"), ConceptError),
    ],
)
def test_an_unknown_concept_or_a_box_outside_the_film_is_an_error(asked, error):
    with pytest.raises(error):
        asked(study(RUN))


def test_rejecting_a_concept_gives_the_head_the_scores_of_films_without_it_and_leaves_the_map():
    opened = study(RUN)
    gone = opened.reject("cavity")
    scores = opened.evidence.scores.clone()
    scores[0] = RUN.reference_scores.absent[0]
    with torch.no_grad():
        expected = RUN.model.classify(scores.unsqueeze(0))
    assert torch.equal(gone.output.logits, expected.logits)
    assert torch.equal(gone.evidence.mean, opened.evidence.mean)
    assert gone.prediction != opened.prediction


def test_rejecting_all_findings_reads_the_film_as_one_without_any():
    with torch.no_grad():
        expected = RUN.model.classify(RUN.reference_scores.absent.unsqueeze(0))
    assert torch.equal(study(RUN).reject().output.logits, expected.logits)


def test_a_box_counts_again_once_the_rejection_of_its_concept_is_undone():
    boxed = study(RUN).apply(LEFT, "cavity")
    rejected = boxed.reject("cavity")
    assert not torch.equal(rejected.output.logits, boxed.output.logits)
    assert torch.equal(rejected.undo().output.logits, boxed.output.logits)


def test_a_box_for_a_rejected_concept_changes_its_map_and_no_class():
    gone = study(RUN).reject("cavity")
    boxed_too = gone.apply(LEFT, "cavity")
    assert torch.equal(boxed_too.output.logits, gone.output.logits)
    assert torch.equal(boxed_too.evidence.mean, study(RUN).apply(LEFT, "cavity").evidence.mean)


def test_the_explanation_lists_corrections_and_marks_rejected_findings():
    opened = study(RUN)
    before = {one.concept.name: one for one in opened.explain().concepts}
    explained = opened.apply(RIGHT, "nodule", confirmed=True).reject("cavity").explain()
    after = {one.concept.name: one for one in explained.concepts}
    assert opened.explain().warnings == ()
    assert explained.warnings == (
        "A person corrected this reading: a box for Nodule, confirmed though the model sees something else there; "
        "Cavity rejected.",
    )
    assert before["cavity"].words == "clearly seen"
    assert (after["cavity"].words, after["cavity"].strength, after["cavity"].rejected) == ("rejected", 0.0, True)
    assert after["cavity"].score == before["cavity"].score
    assert not after["effusion"].rejected


def test_the_log_is_plain_data_with_every_correction_and_its_effect():
    opened = study(RUN)
    corrected = opened.apply(LEFT, "cavity").rule_out(RIGHT).reject("nodule")
    log = json.loads(json.dumps(corrected.log, allow_nan=False))
    assert opened.log == []
    assert [(one["kind"], one["concept"], one["box"]) for one in log] == [
        ("box", "cavity", [0, 0, 100, 200]),
        ("not_box", None, [100, 0, 200, 200]),
        ("reject", "nodule", None),
    ]
    assert log[0]["check"]["dominant"] == "cavity"
    assert log[0]["prediction_before"] == opened.prediction
    assert [one["prediction_after"] for one in log[:2]] == [one["prediction_before"] for one in log[1:]]
    assert log[2]["prediction_after"] == corrected.prediction


def test_a_discarded_prototype_stays_out_of_the_maps_after_a_box():
    kept = torch.tensor([[True, False], [True, True], [True, True]])
    curated = study(RUN, replace(cavity_left_effusion_right(), kept=kept)).apply(LEFT, "cavity")
    assert torch.equal(curated.evidence.mean[0], curated.evidence.similarity[0, 0])


def test_a_box_in_text_is_a_concept_and_four_corners():
    assert parse_box("--box", "active_tb:310,120,420.5,260") == ("active_tb", Box(310, 120, 420.5, 260))
    assert parse_box("--not-box", "all:0,0,1,1") == (None, Box(0, 0, 1, 1))


@pytest.mark.parametrize("text", ["", "cavity", "cavity:1,2,3", "cavity:1,2,3,4,5", "cavity:a,b,c,d", ":1,2,3,4"])
def test_a_misspelt_box_gets_an_example_of_the_format(text):
    with pytest.raises(UserError, match=r"--box takes CONCEPT:x1,y1,x2,y2, as in .*; not "):
        parse_box("--box", text)


@pytest.mark.parametrize("text", ["cavity:5,5,5,9", "cavity:nan,0,1,1", "cavity:0,0,inf,1"])
def test_a_box_without_area_is_refused(text):
    with pytest.raises(UserError, match="A box needs"):
        parse_box("--box", text)


@pytest.fixture(scope="module")
def wary(trained_run, tmp_path_factory):
    """The run, calibrated to doubt the slightest lead."""
    reader = mg.load(trained_run)
    boxes = dict.fromkeys(reader.concepts.names, 40)
    strict = SafetyThresholds({}, 0.0, None, 0.1, 0.9, boxes, {"name": "drawn_dataset"})
    out = tmp_path_factory.mktemp("wary") / "run"
    return reader.changed(replace(reader.loaded.run, safety=strict), "Calibrated.").save(out).loaded.folder


@pytest.fixture(scope="module")
def film(drawn_dataset):
    dataset = Dataset.load(drawn_dataset)
    return dataset.film_path(dataset.in_split("test")[0])


def test_the_read_command_checks_refuses_and_applies_confirmed_boxes(wary, film, tmp_path):
    read = ("read", film, "--model", wary)
    (asked,) = json.loads(medgrape(*read, "--check", "active_tb:10,10,40,40", "--json").stdout)["checks"]
    assert asked["calibrated"] is True
    seen = [one["name"] for one in asked["concepts"]]
    doubted = f"{seen[-1]}:10,10,40,40"

    refused = medgrape(*read, "--box", doubted, "--save", tmp_path / "e.png")
    assert refused.returncode == 2
    assert refused.stderr.strip().endswith("To apply the box anyway, add --confirm.")
    assert len(refused.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())

    options = ("--reject", seen[1], "--not-box", "all:0,0,9,9", "--box", doubted, "--confirm", "--json")
    report = json.loads(medgrape(*read, *options).stdout)
    assert [one["kind"] for one in report["log"]] == ["box", "not_box", "reject"]
    assert report["log"][0]["check"]["mismatch"] is True
    assert report["log"][-1]["prediction_after"] == pytest.approx(report["probabilities"], abs=1e-4)
    assert report["log"][0]["prediction_before"] != report["log"][-1]["prediction_after"]


def test_the_read_command_prints_checks_and_corrections_for_people(wary, film):
    checked = medgrape("read", film, "--model", wary, "--check", "active_tb:10,10,40,40")
    assert checked.returncode == 0, checked.stderr
    assert "claimed: active_tb" in checked.stdout
    assert "learnt from boxes" in checked.stdout
    assert "not a medical device" not in checked.stdout  # only asked: the film was not read out
    corrected = medgrape("read", film, "--model", wary, "--reject", "all")
    assert corrected.returncode == 0, corrected.stderr
    assert "class before" in corrected.stdout
    assert "every finding rejected" in corrected.stdout


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--box", "active_tb"), "--box takes CONCEPT:x1,y1,x2,y2"),
        (("--not-box", "activ_tb:1,1,9,9"), "There is no concept 'activ_tb'"),
        (("--box", "all:900,900,990,990"), "outside the film"),
        (("--reject", "nothing"), "There is no concept 'nothing'"),
        (("--check", "all:1,1,9,9"), "takes one concept, not all"),
        (("--check", "active_tb:1,1,9,9", "--reject", "active_tb"), "--check only asks"),
    ],
)
def test_an_invalid_correction_is_one_sentence_and_exit_code_2(options, complaint, wary, film):
    result = medgrape("read", film, "--model", wary, *options)
    assert result.returncode == 2, result.stderr
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""
