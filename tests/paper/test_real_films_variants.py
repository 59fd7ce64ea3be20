import pytest

from medgrape.config import RECIPES, load_config
from medgrape.errors import UserError
from medgrape.paper.real_film_tables import Summary, page
from medgrape.paper.real_films import RealFilms
from medgrape.paper.recipes import Variant, chosen_variants, load_variants
from medgrape.paper.reproduce import reproduce


def variant(**given):
    return Variant.model_validate({"name": "one", "title": "One", "data": "tbx11k", "settings": "demo"} | given)


def test_the_variants_of_the_package_can_be_loaded():
    names = [variant.name for variant in load_variants()]
    assert {"recipe", "image-labels", "paper", "nih"} <= set(names)


def test_a_variant_changes_the_settings_that_it_names_and_no_others():
    changed = variant(change={"stages.prototypes.background": False, "model.tau": 0.2}).config(7)
    plain = variant().config(7)
    assert changed.seed == 7
    assert (changed.stages.prototypes.background, plain.stages.prototypes.background) == (False, True)
    assert changed.model.tau == 0.2
    back = changed.stages.model_copy(update={"prototypes": plain.stages.prototypes})
    assert changed.model_copy(update={"stages": back, "model": plain.model}) == plain


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stages.prototypes.backgruond": False}, "did you mean 'background'"),
        ({"stages.prototype.background": False}, "did you mean 'prototypes'"),
        ({"stages.concepts.epochs.more": 3}, "'epochs' is a setting itself"),
        ({"stages.concepts.epochs": "many"}, "stages.concepts.epochs"),
    ],
)
def test_a_change_of_an_unknown_setting_is_refused_with_the_nearest_name(change, message):
    with pytest.raises(UserError, match=message):
        variant(change=change).config(0)


def test_settings_that_do_not_come_with_the_package_are_refused():
    with pytest.raises(UserError, match="did you mean 'demo'"):
        variant(settings="demos").config(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[variants]]\nname = "a"\n', "title"),
        ('[[variants]]\nname = "../a"\ntitle = ""\ndata = "nih"\nsettings = "nih"\n', "name"),
        ('[[variants]]\nname = "a"\ntitle = ""\ndata = "vindr"\nsettings = "nih"\n', "data"),
        ("[[variants]\n", "not valid TOML"),
        ('[[variants]]\nname = "a"\ntitle = ""\ndata = "nih"\nsettings = "nih"\nafter = "b"\n', "must stand before it"),
        (2 * '[[variants]]\nname = "a"\ntitle = ""\ndata = "nih"\nsettings = "nih"\n', "two variants 'a'"),
    ],
)
def test_an_invalid_file_of_variants_is_reported_in_one_sentence(text, message, tmp_path):
    (tmp_path / "variants.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        load_variants(tmp_path / "variants.toml")


def test_unknown_variants_and_missing_folders_are_reported_before_any_job(tmp_path):
    variants = (variant(), variant(name="two", data="nih"))
    with pytest.raises(UserError, match=r"no variant 'tow' \(did you mean 'two'"):
        chosen_variants(variants, ["tow"])
    with pytest.raises(UserError, match="needs --nih FOLDER"):
        reproduce(RealFilms(variants, {"tbx11k": tmp_path, "nih": None}, tmp_path / "out"))
    with pytest.raises(UserError, match="There is no folder"):
        reproduce(RealFilms(variants, {"tbx11k": tmp_path / "none", "nih": None}, tmp_path / "out", ("one",)))
    (job,) = RealFilms(variants, {"tbx11k": tmp_path, "nih": None}, tmp_path / "out", ("one",), (3,)).jobs()
    assert (job.name, job.config.seed) == ("one-seed3", 3)
    assert not (tmp_path / "out").exists()


def test_the_variant_that_another_starts_from_is_run_first_with_the_same_seed(tmp_path):
    variants = (variant(name="first"), variant(name="other"), variant(name="second", after="first"))
    first, second = RealFilms(variants, {"tbx11k": tmp_path}, tmp_path / "out", ("second",), (4,)).jobs()
    assert (first.name, second.name) == ("first-seed4", "second-seed4")
    assert second.config.backbone.weights == str(first.run)
    assert first.config.backbone.weights == ""


def test_means_and_standard_deviations_are_over_the_seeds_that_have_a_figure():
    def result(share):
        return {"figures": {"macro_f1": share}, "seconds": 90, "peak_bytes": 2**30, "pictures": {}, "uncalibrated": "",
                "software": "0a1b"}  # fmt: skip

    summary = Summary(variant(data="nih"), {0: result(0.6), 1: result(0.8), 2: result(None)})
    spread = summary.figure("macro_f1")
    assert (spread.mean, spread.sd) == (pytest.approx(0.7), pytest.approx(0.1414, abs=1e-4))
    assert "| One | 3 | 0.700 ± 0.141 | - | - | 1.5 ± 0.0 | 1.0 ± 0.0 |" in page([summary])
    assert "Made by software 0a1b" in page([summary])
    assert Summary(variant(), {}).count == "0 of 3 (missing: seed 0, 1, 2)"


def test_a_variant_without_changes_is_its_settings_file():
    assert variant().config(0) == load_config(RECIPES / "demo.toml")
