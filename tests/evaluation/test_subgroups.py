"""Groups of patients, and gaps of a model's figures between them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from evaluation_scenes import bump, dataset, drawn_dataset, film, patch_box, readings
from test_evaluation_report import Page, at

from medgrape.evaluation.audit.audit import audit_readings, write_audit
from medgrape.evaluation.audit.groups import attributes, divide
from medgrape.evaluation.audit.measures import CheckAlarms, FaithfulnessAreas
from medgrape.evaluation.audit.resampling import compute_gap, replace_constant_rounds, rounds_for
from medgrape.evaluation.classification import calibration, classify
from medgrape.evaluation.localisation import box_energies, localise
from medgrape.evaluation.readings import EvaluationError
from medgrape.evaluation.statistics import holm, interval
from medgrape.safety.boxes import MeasuredBox
from medgrape.safety.claims import SimulatedClaims, majority_alarms

SEX, AGE, VIEW = ("sex",), ("age",), ("view",)


def groups(audit, title):
    table = next(table for table in audit.tables if table.title == title)
    return {group.name: {figure.measure: figure for figure in group.figures} for group in table.groups}


def clinic(right, women=40, men=40, seed=0):
    """Women and men, half of each ill; ``right`` is the share of each with the right class and the right map."""
    chance = np.random.default_rng(seed)
    films = [film(f"t{number}", ("healthy", "ill")[number % 2], split="train") for number in range(10)]
    boxes, maps, probabilities = {("t1", "cavity"): [patch_box(0, 0)]}, [], []
    for number, sex in enumerate("F" * women + "M" * men):
        ill, knows = number % 2, chance.random() < right[sex]
        view = "PA" if number % 4 < 2 else "AP"
        films.append(replace(film(f"f{number:03}", ("healthy", "ill")[ill]), sex=sex, age=20 + number % 60, view=view))
        maps.append([bump(2, 2) if knows else bump(6, 6), bump(0, 0)])
        sure = 0.6 + 0.3 * chance.random()
        answer = ill if knows else 1 - ill
        probabilities.append([sure, 1 - sure] if answer == 0 else [1 - sure, sure])
        if ill:
            boxes[films[-1].id, "cavity"] = [patch_box(2, 2)]
    return readings(dataset(films, boxes), probabilities=probabilities, mean_maps=maps)


@pytest.mark.parametrize(
    ("age", "band"),
    [
        (0, "0 to 17"), (17, "0 to 17"), (18, "18 to 39"), (59, "40 to 59"), (69, "60 to 69"), (70, "70 and over"),
        (101, "70 and over"), (None, "not known"), (412, "not known"), (-1, "not known"),
    ],
)  # fmt: skip
def test_every_age_is_in_one_band_and_impossible_ages_are_not_known(age, band):
    (group,) = divide([replace(film("a"), age=age)], AGE).groups
    assert group.name == band
    assert group.known == (age in range(121))


def test_groups_are_sorted_by_value_with_the_unknown_last():
    films = [replace(film(sex or "x"), sex=sex) for sex in ("", "M", "F", "O")]
    assert [group.name for group in divide(films, SEX).groups] == ["female", "male", "other", "not known"]


def test_crossed_attributes_give_a_group_of_women_over_seventy():
    films = [replace(film(f"{sex}{age}"), sex=sex, age=age) for sex in "FM" for age in (30, 75)]
    films += [replace(film("young"), sex="F"), replace(film("nobody"))]
    division = divide(films, ("sex", "age"))
    assert division.title == "sex and age"
    assert [group.name for group in division.groups] == [
        "female, 18 to 39", "female, 70 and over", "female, age not known", "male, 18 to 39", "male, 70 and over",
        "sex not known, age not known",
    ]  # fmt: skip
    assert np.sum([group.members for group in division.groups], axis=0).tolist() == [1] * 6, "each film in one group"
    assert [group.known for group in division.groups] == [True, True, False, True, True, False]


def test_the_list_of_attributes_is_parsed_without_repetitions():
    assert attributes("sex, sex+age,view,sex") == (("sex",), ("sex", "age"), ("view",))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("sez", "did you mean 'sex'"),
        ("", "known: age, sex, view"),
        ("sex+vew", "did you mean 'view'"),
        ("age+age", "twice"),
    ],
)
def test_an_unknown_attribute_is_refused_with_the_nearest_known_one(asked, message):
    with pytest.raises(EvaluationError, match=message.replace("(", r"\(")):
        attributes(asked)


def test_a_model_that_is_wrong_only_about_women_is_flagged_by_sex_and_not_by_view():
    audit = audit_readings(clinic({"F": 0.3, "M": 0.97}), (SEX, VIEW), run="biased")
    sexes = groups(audit, "sex")
    for measure in ("macro_f1", "accuracy", "recall_ill", "auc", "brier", "pointing", "energy"):
        women, men = sexes["female"][measure].gap, sexes["male"][measure].gap
        assert women.still_flagged, measure
        assert men.still_flagged, measure
        assert women.difference == pytest.approx(-men.difference)
        assert women.p_value == men.p_value
    assert sexes["female"]["accuracy"].value == pytest.approx(sexes["male"]["accuracy"].gap.rest)
    assert not any(
        figure.gap.flagged for view in groups(audit, "view").values() for figure in view.values() if figure.gap
    )
    assert all(sentence.startswith("sex female: ") for sentence in audit.flagged), "the worse of the two is named"
    assert any("right answers" in sentence and "worse by" in sentence for sentence in audit.flagged)
    assert all("also after Holm's correction" in sentence for sentence in audit.flagged)


def test_equal_groups_are_not_flagged():
    audit = audit_readings(clinic({"F": 0.8, "M": 0.8}, women=60, men=60), (SEX,), run="fair")
    assert audit.gaps == 9
    assert audit.flagged == ()
    assert audit.flagged_gaps == audit.still_flagged_gaps == 0


def test_two_groups_that_together_hold_all_films_have_one_gap_for_each_figure():
    audit = audit_readings(clinic({"F": 0.5, "M": 0.9}), (SEX,), run="x")
    compared_figures = [measure for measure in audit.measures if measure.compared]
    assert audit.gaps == len(compared_figures)


def slow_accuracy(read, places):
    truth = [read.dataset.classes.index(read.films[place].class_name) for place in places]
    return np.mean([read.probabilities[place].argmax() == true for place, true in zip(places, truth, strict=True)])


def slow_macro_f1(read, places):
    scores = []
    for name in {read.films[place].class_name for place in places}:
        column = read.dataset.classes.index(name)
        said = [read.probabilities[place].argmax() == column for place in places]
        true = [read.films[place].class_name == name for place in places]
        both = sum(a and b for a, b in zip(said, true, strict=True))
        scores.append(2 * both / (sum(said) + sum(true)))
    return np.mean(scores)


def slow_auc(read, places):
    scores = []
    for column, name in enumerate(read.dataset.classes):
        own = np.array([read.probabilities[p, column] for p in places if read.films[p].class_name == name])
        other = np.array([read.probabilities[p, column] for p in places if read.films[p].class_name != name])
        scores.append(np.mean((own[:, None] > other) + 0.5 * (own[:, None] == other)))
    return np.mean(scores)


@pytest.mark.parametrize(
    ("measure", "slow"), [("accuracy", slow_accuracy), ("macro_f1", slow_macro_f1), ("auc", slow_auc)]
)
def test_a_gap_and_its_interval_agree_with_a_slow_loop_over_patients(measure, slow):
    """Resample the patients of the whole split, and compute the figure of women and of all others among them."""
    read = drawn_dataset(160, seed=3)
    patients = sorted({record.patient for record in read.films})
    women = set(patients[::2])
    read = replace(read, films=[replace(record, sex="F" if record.patient in women else "M") for record in read.films])
    audit = audit_readings(read, (SEX,), run="x")

    chance, gaps, figures = np.random.default_rng(0), [], []
    for _ in range(audit.rounds):
        drawn = [patients[number] for number in chance.integers(len(patients), size=len(patients))]
        places = [place for patient in drawn for place, record in enumerate(read.films) if record.patient == patient]
        female = slow(read, [place for place in places if read.films[place].sex == "F"])
        figures.append(female)
        gaps.append(female - slow(read, [place for place in places if read.films[place].sex == "M"]))
    result = groups(audit, "sex")["female"][measure]
    for bounds, slowly in ((result.interval, figures), (result.gap.interval, gaps)):
        wanted = interval(np.array(slowly))
        assert (bounds.low, bounds.high) == pytest.approx((wanted.low, wanted.high))
    denied = min(np.mean([gap <= 1e-12 for gap in gaps]), np.mean([gap >= -1e-12 for gap in gaps]))
    assert result.gap.p_value == pytest.approx(min(max(2 * denied, 1 / audit.rounds), 1))


def test_the_figures_of_a_group_equal_those_of_a_report_on_its_films():
    read = drawn_dataset(160, seed=1)
    read = replace(read, films=[replace(record, view="AP" if n % 3 else "PA") for n, record in enumerate(read.films)])
    audit = audit_readings(read, (VIEW,), run="x")
    chosen = np.array([record.view == "AP" for record in read.films])
    kept = [record for record in read.films if record.view == "AP"]
    alone = replace(
        read, films=kept, probabilities=read.probabilities[chosen], scores=read.scores[chosen],
        mean_maps=read.mean_maps[chosen], max_maps=read.max_maps[chosen],
    )  # fmt: skip
    for figures, films in (
        (groups(audit, "view")["AP"], alone),
        ({figure.measure: figure for figure in audit.whole.figures}, read),
    ):
        naming, belief, pointing = classify(films), calibration(films), localise(films).per_pair
        energy = np.mean([(pair.share, pair.area) for pair in box_energies(films)], axis=0)
        wanted = {
            "macro_f1": (naming.macro_f1, [naming.majority.macro_f1]),
            "accuracy": (naming.accuracy, [naming.majority.accuracy]),
            "recall_active": (naming.classes[2].recall, [0.0]),
            "recall_healthy": (naming.classes[0].recall, [1.0]),
            "auc": (naming.macro_auc, [0.5]),
            "expected_error": (belief.expected_error, [belief.constant.expected_error]),
            "brier": (belief.brier, [belief.constant.brier]),
            "pointing": (pointing.mean.share, [pointing.chance, pointing.fixed]),
            "energy": (energy[0], [energy[1]]),
        }
        for name, (value, trivial) in wanted.items():
            assert figures[name].value == pytest.approx(value), name
            assert [baseline.value for baseline in figures[name].trivial] == pytest.approx(trivial), name
            assert figures[name].interval.low <= figures[name].value <= figures[name].interval.high
        confident = films.probabilities.max(axis=1).mean()
        assert figures["overconfidence"].value == pytest.approx(confident - naming.accuracy)


def test_the_safety_check_is_counted_by_group_with_the_trivial_check():
    read = clinic({"F": 0.8, "M": 0.8}, women=44, men=44)
    nothing = torch.zeros(2)
    ill = [record for record in read.films if record.class_name == "ill"]
    claims = SimulatedClaims.on(
        [MeasuredBox(record, "cavity", patch_box(2, 2), nothing, nothing) for record in ill], read.dataset
    )
    own = np.array([[record.sex == "F", record.sex == "M"] for record in ill])  # doubts women's cavities, knows men's
    audit = audit_readings(
        read, (SEX,), run="x", check_alarms=CheckAlarms(claims, own, majority_alarms("cavity", claims), "always Cavity")
    )
    women, men = groups(audit, "sex")["female"], groups(audit, "sex")["male"]
    assert (women["caught"].value, women["false_alarms"].value) == (0.0, 1.0)
    assert (men["caught"].value, men["false_alarms"].value) == (1.0, 0.0)
    assert [baseline.value for baseline in women["caught"].trivial] == [1.0]
    assert [baseline.value for baseline in women["false_alarms"].trivial] == [0.0]
    assert (women["balance"].value, men["balance"].value) == (0.0, 1.0)
    assert [baseline.value for baseline in women["balance"].trivial] == [1.0]
    assert women["caught"].patients == 22
    assert women["caught"].gap.still_flagged
    sentences = [sentence for sentence in audit.flagged if "false alarms" in sentence]
    assert len(sentences) == 1
    assert sentences[0].startswith("sex female: false alarms 1.000, in all other films 0.000; worse by 1.000")


def test_a_check_that_never_warns_has_a_balance_of_one_half_with_an_interval():
    read = clinic({"F": 0.8, "M": 0.8}, women=24, men=60)
    ill, nothing = [record for record in read.films if record.class_name == "ill"], torch.zeros(2)
    claims = SimulatedClaims.on(
        [MeasuredBox(record, "cavity", patch_box(2, 2), nothing, nothing) for record in ill], read.dataset
    )
    own = np.array([[False, record.sex == "M" and number % 4 > 0] for number, record in enumerate(ill)])
    audit = audit_readings(read, (SEX,), run="x", check_alarms=CheckAlarms(claims, own, None))
    women, men = groups(audit, "sex")["female"], groups(audit, "sex")["male"]
    assert women["balance"].value == 0.5
    assert women["balance"].interval.low < 0.45 < 0.55 < women["balance"].interval.high
    assert men["balance"].value == pytest.approx((men["caught"].value + 1 - men["false_alarms"].value) / 2)
    assert women["balance"].trivial == ()


def test_energy_counts_every_film_and_finding_with_a_box_once_and_has_a_flat_map_as_baseline():
    films = [replace(film(f"f{number:02}"), sex="FM"[number % 2]) for number in range(24)]
    boxes = {(record.id, "cavity"): [patch_box(2, 2)] for record in films}
    boxes |= {(record.id, "effusion"): [patch_box(5, 5), patch_box(5, 6)] for record in films if record.sex == "F"}
    flat, left = np.zeros((8, 8)), np.repeat([[1.0, 0.0]], 8, axis=0)
    left = np.repeat(left, 4, axis=1)  # a woman's cavity lies in the half that stands out
    maps = [[left if record.sex == "F" else flat, flat] for record in films]
    sexes = groups(audit_readings(readings(dataset(films, boxes), mean_maps=maps), (SEX,), run="x"), "sex")
    women, men = sexes["female"]["energy"], sexes["male"]["energy"]
    assert women.value == pytest.approx((2 / 64 + 2 / 64) / 2, rel=0.01), "cavity 2 of 64, effusion flat"
    assert [(baseline.title, baseline.value) for baseline in women.trivial] == [
        ("a map that is the same everywhere", pytest.approx((1 / 64 + 2 / 64) / 2))
    ]
    assert men.value == pytest.approx(men.trivial[0].value) == pytest.approx(1 / 64)
    assert women.patients == 12


def test_insertion_and_deletion_are_means_over_films_and_lower_deletion_is_better():
    read = clinic({"F": 0.8, "M": 0.8})
    scatter = np.random.default_rng(0).uniform(-0.05, 0.05, len(read.films))
    women = np.array([record.sex == "F" for record in read.films])
    changed = FaithfulnessAreas(
        deletion=np.where(women, 0.6, 0.3) + scatter,
        insertion=np.where(women, 0.4, 0.7) + scatter,
        random_deletion=0.5 + scatter,
        random_insertion=0.55 + scatter,
    )
    audit = audit_readings(read, (SEX, VIEW), run="x", areas=changed)
    female = groups(audit, "sex")["female"]
    for name, random in (("deletion", 0.5), ("insertion", 0.55)):
        figure = female[name]
        assert figure.value == pytest.approx(getattr(changed, name)[women].mean())
        assert figure.gap.rest == pytest.approx(getattr(changed, name)[~women].mean())
        assert figure.gap.still_flagged
        assert figure.patients == 40
        assert figure.interval.low < figure.value < figure.interval.high
        assert [(baseline.title, baseline.value) for baseline in figure.trivial] == [
            ("patches in a random order", pytest.approx(random + scatter[women].mean()))
        ]
        (sentence,) = (sentence for sentence in audit.flagged if f" {name} " in sentence)
        assert sentence.startswith(f"sex female: {name} "), "less is better for deletion, more for insertion"
        assert "worse by" in sentence


def test_insertion_and_deletion_are_left_out_unless_requested():
    measures = {measure.name for measure in audit_readings(clinic({"F": 0.8, "M": 0.8}), (SEX,), run="x").measures}
    assert not {"deletion", "insertion", "caught", "balance"} & measures


def test_films_with_unknown_sex_are_a_group_of_their_own():
    read = clinic({"F": 0.9, "M": 0.9})
    read = replace(
        read, films=[replace(record, sex="") if n % 4 == 3 else record for n, record in enumerate(read.films)]
    )
    audit = audit_readings(read, (SEX,), run="x")
    (table,) = audit.tables
    assert [(group.name, group.films) for group in table.groups] == [("female", 30), ("male", 30), ("not known", 20)]
    assert groups(audit, "sex")["not known"]["accuracy"].gap is not None


def test_an_attribute_that_is_known_of_no_film_is_refused_or_gets_a_warning():
    read = clinic({"F": 0.9, "M": 0.9})
    strangers = replace(read, films=[replace(record, sex="", age=None) for record in read.films])
    with pytest.raises(EvaluationError, match="No film of this split has a known sex or age"):
        audit_readings(strangers, (SEX, AGE), run="x")
    audit = audit_readings(strangers, (SEX, VIEW), run="x")
    assert "No film has a known sex." in audit.warnings


def test_with_all_films_in_one_group_nothing_is_compared():
    read = clinic({"F": 0.9}, women=40, men=0)
    audit = audit_readings(read, (SEX,), run="x")
    assert audit.gaps == 0
    assert "All films are of one sex, female: there is nothing to compare." in audit.warnings
    assert audit.headline[0].startswith("No gap could be judged")


def test_a_group_of_nine_patients_has_no_figures_and_is_never_flagged():
    audit = audit_readings(clinic({"F": 0.0, "M": 1.0}, women=9), (SEX,), run="x")
    for figure in groups(audit, "sex")["female"].values():
        assert (figure.too_few, figure.value, figure.interval, figure.gap) == (True, None, None, None)
    assert all(figure.gap is None for figure in groups(audit, "sex")["male"].values()), "the rest has too few"
    assert audit.flagged == ()
    assert any("sex female (9)" in line for line in audit.warnings)


def test_two_films_of_one_patient_count_as_one_of_the_ten_patients():
    read = clinic({"F": 0.0, "M": 1.0}, women=18)
    read = replace(
        read, films=[replace(record, patient=f"w{n // 2}") if n < 18 else record for n, record in enumerate(read.films)]
    )
    (table,) = audit_readings(read, (SEX,), run="x").tables
    assert (table.groups[0].films, table.groups[0].patients) == (18, 9)
    assert all(figure.too_few for figure in table.groups[0].figures)


def test_each_figure_needs_ten_patients_with_the_films_it_is_computed_from():
    women = groups(audit_readings(clinic({"F": 0.9, "M": 0.9}, women=16), (SEX,), run="x"), "sex")["female"]
    few = {name for name, figure in women.items() if figure.too_few}
    assert few == {"recall_healthy", "recall_ill", "auc", "pointing", "energy"}, "eight of the sixteen women are ill"
    assert women["recall_ill"].patients == 8


def test_a_group_in_which_a_class_is_missing_has_no_macro_f1():
    read = clinic({"F": 0.9, "M": 0.9})
    healthy = [replace(record, view="AP" if record.class_name == "healthy" else "PA") for record in read.films]
    audit = audit_readings(replace(read, films=healthy), (VIEW,), run="x")
    assert groups(audit, "view")["AP"]["macro_f1"].too_few, "it would be over other classes than that of the rest"
    assert not groups(audit, "view")["AP"]["accuracy"].too_few


def test_the_calibration_error_is_reported_but_not_compared_as_it_grows_with_fewer_films():
    for group in groups(audit_readings(clinic({"F": 0.2, "M": 1.0}), (SEX,), run="x"), "sex").values():
        assert group["expected_error"].value is not None
        assert group["expected_error"].gap is None
        assert group["overconfidence"].gap.flagged


def test_ten_right_answers_of_ten_are_not_certain():
    rounds = replace_constant_rounds(1.0, np.ones(100_000), 10, seed=0)
    assert np.quantile(rounds, 0.025) == pytest.approx(0.025**0.1, abs=0.005), "Clopper and Pearson's bound"
    rounds = replace_constant_rounds(0.0, np.zeros(100_000), 10, seed=0)
    assert np.quantile(rounds, 0.975) == pytest.approx(1 - 0.025**0.1, abs=0.005)
    scattered = np.linspace(0.8, 1.0, 50)
    assert replace_constant_rounds(1.0, scattered, 10, seed=0) is scattered
    nine_of_ten = np.random.default_rng(1).binomial(200, 0.9, 1000) / 200
    assert compute_gap(1.0, np.ones(1000), 0.9, nine_of_ten).flagged, "as though ten of ten were certain"
    assert not compute_gap(1.0, replace_constant_rounds(1.0, np.ones(1000), 10, seed=0), 0.9, nine_of_ten).flagged


def test_the_mean_of_two_certain_proportions_gets_an_interval_on_both_sides():
    none_and_all = replace_constant_rounds(0.5, np.full(100_000, 0.5), 10, seed=0, proportions=2)
    bounds = np.quantile(none_and_all, (0.025, 0.975))
    assert none_and_all.mean() == pytest.approx(0.5, abs=0.005)
    assert bounds[1] - 0.5 == pytest.approx(0.5 - bounds[0], abs=0.01) == pytest.approx(0.15, abs=0.03)
    assert replace_constant_rounds(1.0, np.ones(1000), 10, seed=0, proportions=2).max() <= 1
    assert (replace_constant_rounds(0.5, np.full(9, 0.5), 10, seed=0) == 0.5).all(), "one share is certain at 0 and 1"


def test_a_gap_due_to_rounding_is_not_flagged():
    gap = compute_gap(0.3 + 1e-16, np.full(1000, 0.1 + 0.2), 0.3, np.full(1000, 0.3))
    assert not gap.flagged
    assert gap.p_value == 1.0


def test_a_gap_with_the_same_sign_in_all_rounds_has_the_smallest_possible_p_value():
    assert compute_gap(0.9, np.full(500, 0.9), 0.1, np.full(500, 0.1)).p_value == 1 / 500


def test_holms_correction_of_the_gaps_agrees_with_a_count_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("gaps", [1, 25, 26, 400])
def test_there_are_enough_rounds_for_a_certain_gap_to_survive_the_correction(gaps):
    rounds = rounds_for(gaps, 1000)
    assert rounds >= 1000
    sure = compute_gap(0.9, np.full(rounds, 0.9), 0.1, np.full(rounds, 0.1))
    assert sure.corrected(gaps * sure.p_value).still_flagged


EVIL = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    read = clinic({"F": 0.3, "M": 0.97})
    odd = [replace(record, view=EVIL if n % 5 == 0 else "", age=20) for n, record in enumerate(read.films)]
    audit = audit_readings(replace(read, films=odd), (SEX, VIEW, AGE, ("sex", "view")), run=f"run {EVIL}")
    return audit, write_audit(audit, tmp_path_factory.mktemp("audit"))


def test_the_json_file_is_plain_data_without_nan(written):
    audit, files = written
    payload = json.loads(
        files.json.read_text("utf-8"), parse_constant=lambda name: pytest.fail(f"{name} in audit.json")
    )
    assert payload == audit.to_json()
    assert payload["tables"][0]["groups"][0]["figures"][0]["gap"]["still_flagged"] is True
    assert payload["notice"] == "Research software, not a medical device"


def test_every_figure_on_the_page_equals_that_in_the_json_file(written):
    audit, files = written
    page, payload = Page(files.html.read_text("utf-8")), audit.to_json()
    assert len(page.figures) > 100
    for path, exact, _ in page.figures:
        assert float(exact) == at(payload, path), path
    assert {"whole.figures.0.value", "tables.0.groups.1.figures.3.gap.difference"} <= {
        path for path, *_ in page.figures
    }


def test_flagged_gaps_are_written_as_sentences_and_plots_have_a_text_alternative(written):
    audit, files = written
    page = Page(files.html.read_text("utf-8"))
    words = " ".join(page.words)
    assert all(sentence in words for sentence in audit.flagged)
    assert "worse, also after correction" in words.replace("worse ,", "worse,")
    plots = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg"]
    assert [label.split(".")[0] for label in plots] == [
        f"Macro-F1 and pointing by {by}" for by in ("sex", "view", "sex and view")
    ]
    assert "female: macro-F1" in plots[0]


def test_the_page_loads_nothing_from_elsewhere_and_runs_no_script(written):
    html = written[1].html.read_text("utf-8")
    page = Page(html)
    assert "http://" not in html
    assert "https://" not in html
    assert "<script" not in html.lower()
    assert any(EVIL in word for word in page.words)
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert not any("style" in attributes for _, attributes in page.tags)
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
