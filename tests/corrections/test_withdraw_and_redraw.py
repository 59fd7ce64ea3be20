"""Withdrawing and redrawing any correction, not only the last; undo; the log."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from correcting_scenes import CONCEPTS, LEFT, RIGHT, boxes, study, untaught
from medgrape.concepts import ConceptError
from medgrape.corrections.statements import BoxCorrection, Rejection, StudyChange
from medgrape.errors import UserError
from medgrape.geometry import Box, BoxOutsideError
from medgrape.study import ConceptMismatchError, NoSuchCorrectionError, NothingToUndoError

RUN = untaught()
TOP = Box(0, 0, 200, 100)
names = st.sampled_from([*CONCEPTS.names, None])
drawn = st.builds(BoxCorrection, boxes(), names, st.booleans())
corrections = st.lists(st.one_of(drawn, st.builds(Rejection, names)), min_size=1, max_size=4)


def answer(one):
    """Everything that a study says, to the last bit."""
    output, seen = one.output, one.evidence
    return [output.logits, output.scores, output.attention, seen.similarity, seen.mean, seen.disagreement]


def same(one, other):
    pairs = zip(answer(one), answer(other), strict=True)
    return one.prediction == other.prediction and all(torch.equal(a, b) for a, b in pairs)


@given(corrections, st.data())
@settings(deadline=None, max_examples=40)
def test_withdrawing_a_correction_is_as_if_it_had_never_been_made(some, data):
    number = data.draw(st.integers(0, len(some) - 1))
    made = study(RUN).correct(*some, confirmed=True)
    told = made.corrections
    never = study(RUN).correct(*some[:number], *some[number + 1 :], confirmed=True)

    without = made.withdraw(number)

    assert without.corrections == never.corrections
    assert same(without, never)
    assert (without.undo() is made, made.corrections) == (True, told)


@given(corrections, drawn, drawn, st.data())
@settings(deadline=None, max_examples=40)
def test_redrawing_a_box_is_withdrawing_it_and_drawing_another(some, old, new, data):
    number = data.draw(st.integers(0, len(some)))
    made = study(RUN).correct(*some[:number], old, *some[number:], confirmed=True)

    redrawn = made.redraw(number, new.box, new.concept, positive=new.positive, confirmed=True)
    apart = made.withdraw(number).correct(new, confirmed=True)

    assert same(redrawn, apart)
    assert redrawn.corrections[number] == apart.corrections[-1]
    kept = redrawn.corrections[:number] + redrawn.corrections[number + 1 :]
    assert kept == apart.corrections[:-1]
    assert redrawn.undo() is made


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_undo_reverts_every_kind_of_change(data):
    history = [study(RUN)]
    for _ in range(6):
        now = history[-1]
        boxed = [number for number, one in enumerate(now.corrections) if isinstance(one, BoxCorrection)]
        kinds = ["correct", *(["withdraw"] if now.corrections else []), *(["redraw"] if boxed else [])]
        history.append(_step(now, data.draw(st.sampled_from(kinds)), boxed, data))
    told = [entry["prediction_after"] for entry in history[-1].log]
    assert told == [dict(one.prediction) for one in history[1:]]
    for now, before in zip(history[:0:-1], history[-2::-1], strict=True):
        assert now.change.revert(now.corrections) == before.corrections
        assert now.change.apply(before.corrections) == now.corrections
        assert now.undo() is before
        assert same(before, study(RUN).resumed(before.corrections))
    with pytest.raises(NothingToUndoError):
        history[0].undo()


def _step(now, kind, boxed, data):
    if kind == "correct":
        return now.correct(data.draw(st.one_of(drawn, st.builds(Rejection, names))), confirmed=True)
    if kind == "withdraw":
        return now.withdraw(data.draw(st.integers(0, len(now.corrections) - 1)))
    return now.redraw(data.draw(st.sampled_from(boxed)), data.draw(boxes()), data.draw(names), confirmed=True)


def test_omitted_arguments_of_redraw_keep_their_values():
    made = study(RUN).apply(LEFT, "cavity").rule_out(RIGHT, "nodule")
    dragged = made.redraw(1, TOP)
    assert (dragged.corrections[1].box, dragged.corrections[1].concept) == (TOP, "nodule")
    assert not dragged.corrections[1].positive
    renamed = made.redraw(1, concept="effusion")
    assert (renamed.corrections[1].box, renamed.corrections[1].concept) == (RIGHT, "effusion")
    assert made.redraw(1, concept=None).corrections[1].concept is None
    turned = made.redraw(1, positive=True, confirmed=True).corrections[1]
    assert turned == BoxCorrection(RIGHT, "nodule", confirmed=True, check=made.check(RIGHT, "nodule"))
    assert dragged.corrections[0] is made.corrections[0]


@pytest.mark.parametrize(
    "redraw",
    [
        lambda one: one.redraw(0, RIGHT),
        lambda one: one.redraw(0, concept="effusion"),
        lambda one: one.redraw(1, positive=True),
    ],
    ids=["dragged", "renamed", "turned"],
)
def test_a_box_with_a_warning_is_not_redrawn_until_it_is_confirmed(redraw):
    made = study(RUN).apply(LEFT, "cavity").rule_out(RIGHT, "cavity")
    told = made.corrections
    with pytest.raises(ConceptMismatchError, match="Nothing was changed"):
        redraw(made)
    assert made.corrections == told


def test_a_confirmation_does_not_hold_for_the_redrawn_box():
    made = study(RUN).apply(RIGHT, "cavity", confirmed=True)
    with pytest.raises(ConceptMismatchError):
        made.redraw(0, Box(110, 0, 200, 200))
    moved = made.redraw(0, LEFT)
    assert not moved.corrections[0].confirmed
    assert moved.corrections[0].check == made.check(LEFT, "cavity")


def test_the_check_of_a_redrawn_box_ignores_other_corrections():
    persuaded = study(RUN).rule_out(RIGHT, "effusion").rule_out(RIGHT, "nodule").apply(LEFT, "cavity")
    with pytest.raises(ConceptMismatchError):
        persuaded.redraw(2, RIGHT)


def test_a_box_counts_again_once_the_rejection_before_it_is_withdrawn():
    rejected = study(RUN).reject("cavity").apply(LEFT, "cavity")
    assert same(rejected.withdraw(0), study(RUN).apply(LEFT, "cavity"))


@pytest.mark.parametrize("number", [-1, 2, 99])
def test_the_number_of_a_missing_correction_is_an_error(number):
    made = study(RUN).apply(LEFT, "cavity").reject("nodule")
    for asked in (made.withdraw, made.redraw):
        with pytest.raises(NoSuchCorrectionError, match=rf"^There is no correction {number}: .* numbered 0 to 1\.$"):
            asked(number)
    with pytest.raises(NoSuchCorrectionError, match=r"^There is no correction 0: none is in force\.$"):
        study(RUN).withdraw(0)


def test_a_rejection_is_withdrawn_but_not_redrawn():
    made = study(RUN).reject("cavity")
    with pytest.raises(UserError, match=r"^Correction 0 is a rejection .*; withdraw it instead\.$"):
        made.redraw(0, LEFT, "cavity")
    assert same(made.withdraw(0), study(RUN))


def test_an_invalid_redrawn_box_is_an_error():
    made = study(RUN).apply(LEFT, "cavity")
    with pytest.raises(BoxOutsideError):
        made.redraw(0, Box(300, 0, 400, 10), confirmed=True)
    with pytest.raises(ConceptError):
        made.redraw(0, concept="cavty", confirmed=True)


def test_the_log_holds_withdrawn_and_redrawn_corrections():
    opened = study(RUN)
    made = opened.apply(LEFT, "cavity").reject("nodule").redraw(0, TOP, None).withdraw(1)
    log = json.loads(json.dumps(made.log, allow_nan=False))
    assert [(one["step"], one["number"], one["kind"], one["concept"]) for one in log] == [
        ("corrected", 0, "box", "cavity"),
        ("corrected", 1, "reject", "nodule"),
        ("redrawn", 0, "box", None),
        ("withdrawn", 1, "reject", "nodule"),
    ]
    assert [one["replaced"] and one["replaced"]["box"] for one in log] == [None, None, list(LEFT.corners), None]
    assert [one["prediction_after"] for one in log[:-1]] == [one["prediction_before"] for one in log[1:]]
    assert (log[0]["prediction_before"], log[-1]["prediction_after"]) == (opened.prediction, made.prediction)
    assert made.undo().log == made.log[:-1]


def test_the_explanation_names_only_corrections_in_force():
    made = study(RUN).apply(LEFT, "cavity").reject("nodule")
    (told,) = made.withdraw(0).explain().warnings
    assert told == "A person corrected this reading: Nodule rejected."
    assert made.withdraw(1).withdraw(0).explain().warnings == ()
    (box,) = made.redraw(0, TOP, confirmed=True).explain().drawn
    assert box.box == TOP


def test_a_change_affects_only_its_position_among_equal_corrections():
    twin = Rejection("cavity")
    change = StudyChange("redrawn", 1, Rejection("nodule"), twin)
    assert change.apply((twin, twin, twin)) == (twin, Rejection("nodule"), twin)
    assert change.revert((twin, Rejection("nodule"), twin)) == (twin, twin, twin)
