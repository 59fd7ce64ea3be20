"""A reading as PDF: complete and legible, whatever was typed."""

import io
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import pypdf
import pytest
from pdf_scenes import NIH, correction, explanation, reading, step, tall, usual, wide

from medgrape.explain.film_panel import film_panel, mark_concepts
from medgrape.explain.render import draw
from medgrape.explain.words import NOTICE
from medgrape.server.api import reading_pdf as pdf
from medgrape.server.api.reading_pdf import UNPRINTABLE, escaped, reading_pdf


def sheets(explained, steps=(), warnings=(), **changes):
    """The words on each sheet, with every gap made one blank."""
    content = reading_pdf(reading(explained, steps, **changes), explained, warnings)
    return [re.sub(r"\s+", " ", page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(content)).pages]


@cache
def usual_explanation():
    return explanation(usual())


@cache
def usual_pictures():
    """Return film and evidence of the usual explanation; drawing them takes most of the time of a test."""
    return film_panel(usual_explanation(), mark_concepts(usual_explanation())), draw(usual_explanation())


@pytest.fixture
def drawn_once(monkeypatch):
    """Do not draw the same film again for each text."""
    film, evidence = usual_pictures()
    monkeypatch.setattr(pdf, "film_panel", lambda *_: film)
    monkeypatch.setattr(pdf, "draw", lambda _: evidence)


def of_steps(*reasons, **changes):
    explained = usual_explanation()
    steps = [step(number, explained, reason, **changes) for number, reason in enumerate(reasons, 1)]
    return " ".join(sheets(explained, steps)[2:])


@pytest.mark.parametrize("size", [tall(), wide(), usual()], ids=["tall", "wide", "usual"])
def test_a_reading_with_fourteen_findings_and_no_correction_takes_two_sheets(size):
    first, second = sheets(explanation(size), warnings=("The film is of unknown view.",))
    for one in NIH:
        assert one.title in first
    for text in ("2" * 16, "female, 57 years", "DX, PA", "ada", "nih, version", "9f86d081884c", "2026-11-18 09:30 UTC",
                 "not corrected", "unknown view", "clearly seen", "not seen", "+30.0", "60 %"):  # fmt: skip
        assert text in first.replace("\u00a0", " "), text
    assert "The evidence" in second


def test_every_sheet_has_the_notice_and_its_number():
    explained = explanation(usual())
    found = sheets(explained, [step(number, explained, "word " * 90) for number in range(1, 41)])
    assert len(found) > 4
    for number, page in enumerate(found, 1):
        assert NOTICE in page
        assert f"page {number} of {len(found)}" in page
    text = " ".join(found[2:])
    assert [number for number in range(1, 41) if f"y {120 + number} to {260 + number}" not in text] == []
    assert all("When and who" in page for page in found[2:])


@pytest.mark.usefixtures("drawn_once")
def test_a_step_is_printed_with_its_check_its_confirmation_and_its_reason():
    text = of_steps("Seen on the film of last year.")
    assert "A box for Mass at x 310 to 420, y 121 to 261" in text
    assert "Check: mismatch. Inside the box Nodule leads over Mass by 0.230" in text
    assert "Confirmed all the same." in text
    assert "Reason given: “Seen on the film of last year.”" in text
    assert "(−0.2)" in text


@pytest.mark.usefixtures("drawn_once")
def test_rejections_negative_boxes_and_undone_steps_are_printed():
    rejected = correction(kind="reject", concept=None, box=None, check=None)
    assert "Rejected: every finding" in of_steps(None, correction=rejected)
    assert "A box against every finding at" in of_steps(
        None, correction=correction(kind="not_box", concept=None, check=None)
    )
    assert "Undone: A box for Mass" in of_steps(None, kind="undone")
    assert "Check:" not in of_steps(None, kind="undone")


@pytest.mark.usefixtures("drawn_once")
def test_removed_and_changed_boxes_are_printed_with_their_former_state():
    assert "Removed: A box for Mass" in of_steps("Wrong film.", kind="withdrawn", about="withdrawn")
    was = correction(concept="nodule")
    text = of_steps(None, kind="redrawn", about="redrawn", replaced=was)
    assert "Changed to: A box for Mass" in text
    assert "It was: A box for Nodule" in text
    assert "Check: mismatch." in text
    assert "Undone: Changed to: A box for Mass" in of_steps(None, kind="undone", about="redrawn", replaced=was)


@pytest.mark.usefixtures("drawn_once")
@pytest.mark.parametrize(
    "typed",
    [
        "größer, früher",
        "β > 3 mm",
        "Кажется, это узел",
        "<b>bold</b> & <img src='file:///etc/passwd'/>",
        "</para>",
        "&amp;",
    ],
)
def test_what_people_type_is_printed_as_they_typed_it(typed):
    assert f"“{typed}”" in of_steps(typed)


def test_letters_that_cannot_be_printed_are_replaced_with_a_note():
    for typed in ("肺", "مرحبا", "שלום"):
        assert escaped(typed).startswith("?")
        assert UNPRINTABLE in escaped(typed)
    assert UNPRINTABLE not in escaped("really?")


@pytest.mark.usefixtures("drawn_once")
@pytest.mark.parametrize("typed", ["W" * 500, "\x00\x07\x1b[31m", "\u202egnitirw", "a\nb\tc", " " * 500])
def test_no_typed_text_prevents_printing(typed):
    assert "Corrections" in of_steps(typed, typed)


def test_a_printed_past_state_is_marked():
    explained = explanation(usual())
    first, *_ = sheets(explained, [step(1, explained)], revision=5, at=1)
    assert "the reading after 1 of 5 steps, not its present state" in first
    assert "after step 1 of 5" in first


def test_classes_that_do_not_fit_beside_the_film_are_counted():
    explained = explanation(usual())
    many = dict(explained.probabilities) | {f"class_{number}": 1e-6 for number in range(25)}
    assert "25 less likely classes are in reading.json." in sheets(replace(explained, probabilities=many))[0]


def test_the_pdf_embeds_its_font():
    explained = explanation(usual())
    pdf = pypdf.PdfReader(io.BytesIO(reading_pdf(reading(explained), explained, ())))
    fonts = [font.get_object() for font in pdf.pages[0]["/Resources"]["/Font"].values()]
    used = [font for font in fonts if "DejaVu" in font["/BaseFont"]]
    assert len(used) >= 2
    assert all("/FontFile2" in font["/FontDescriptor"].get_object() for font in used)
    assert pdf.metadata.title == f"Reading of film {'2' * 16}"
    assert (round(pdf.pages[0].mediabox.width), round(pdf.pages[0].mediabox.height)) == (595, 842)


def test_simultaneous_prints_do_not_mix():
    explained = explanation(wide())

    def one(number):
        return sheets(explained, [step(1, explained, f"reason {number} Ж{'ßβя'[number % 3]}")])[-1]

    with ThreadPoolExecutor(4) as hands:
        for number, text in enumerate(hands.map(one, range(6))):
            assert f"reason {number} Ж{'ßβя'[number % 3]}" in text
