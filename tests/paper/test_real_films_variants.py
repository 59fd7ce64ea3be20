import pytest

from medgrape.config import load_config
from medgrape.errors import UserError
from medgrape.paper.real_films.reproduce import Suite, reproduce
from medgrape.paper.real_films.tables import Summary, page
from medgrape.paper.real_films.variants import Variant, chosen, load_variants


def variant(**given):
    return Variant.model_validate({"name": "one", "title": "One", "data": "tbx11k", "settings": "demo"} | given)


def test_the_variants_of_the_package_have_their_own_names_and_known_data():
    names = [one.name for one in load_variants()]
    assert {"recipe", "image-labels", "paper", "nih"} <= set(names)


def test_a_variant_changes_what_it_names_and_nothing_else():
    changed = variant(change={"stages.prototypes.background": False, "model.tau": 0.2}).config(7)
    plain = variant().config(7)
    assert changed.seed == 7
    assert (changed.stages.prototypes.background, plain.stages.prototypes.background) == (False, True)
    assert changed.model.tau == 0.2
    back = changed.stages.model_copy(update={"prototypes": plain.stages.prototypes})
    assert changed.model_copy(update={"stages": back, "model": plain.model}) == plain


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"stages.prototypes.backgruond": False}, "did you mean 'background'"),
        ({"stages.prototype.background": False}, "did you mean 'prototypes'"),
        ({"stages.concepts.epochs.more": 3}, "'epochs' is a setting itself"),
        ({"stages.concepts.epochs": "many"}, "stages.concepts.epochs"),
    ],
)
def test_a_change_of_what_is_no_setting_is_refused_with_the_nearest(change, told):
    with pytest.raises(UserError, match=told):
        variant(change=change).config(0)


def test_settings_that_do_not_come_with_the_package_are_refused():
    with pytest.raises(UserError, match="did you mean 'demo'"):
        variant(settings="demos").config(0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[variants]]\nname = "a"\n', "title"),
        ('[[variants]]\nname = "../a"\ntitle = ""\ndata = "nih"\nsettings = "nih"\n', "name"),
        ('[[variants]]\nname = "a"\ntitle = ""\ndata = "vindr"\nsettings = "nih"\n', "data"),
        ("[[variants]\n", "not valid TOML"),
        ('[[variants]]\nname = "a"\ntitle = ""\ndata = "nih"\nsettings = "nih"\nafter = "b"\n', "must stand before it"),
        (2 * '[[variants]]\nname = "a"\ntitle = ""\ndata = "nih"\nsettings = "nih"\n', "two variants 'a'"),
    ],
)
def test_a_file_of_variants_that_cannot_be_used_is_one_sentence(text, told, tmp_path):
    (tmp_path / "variants.toml").write_text(text)
    with pytest.raises(UserError, match=told):
        load_variants(tmp_path / "variants.toml")


def test_unknown_variants_and_missing_folders_are_told_before_anything_is_done(tmp_path):
    variants = (variant(), variant(name="two", data="nih"))
    with pytest.raises(UserError, match=r"no variant 'tow' \(did you mean 'two'"):
        chosen(variants, ["tow"])
    with pytest.raises(UserError, match="needs --nih FOLDER"):
        reproduce(Suite(variants, {"tbx11k": tmp_path, "nih": None}, tmp_path / "out"))
    with pytest.raises(UserError, match="There is no folder"):
        reproduce(Suite(variants, {"tbx11k": tmp_path / "none", "nih": None}, tmp_path / "out"), ["one"])
    (row,) = Suite(variants, {"tbx11k": tmp_path, "nih": None}, tmp_path / "out").rows(["one"], [3])
    assert (row.name, row.config.seed) == ("one-seed3", 3)
    assert not (tmp_path / "out").exists()


def test_what_a_variant_goes_on_from_is_run_first_with_the_same_seed(tmp_path):
    variants = (variant(name="first"), variant(name="other"), variant(name="second", after="first"))
    rows = Suite(variants, {"tbx11k": tmp_path}, tmp_path / "out").rows(["second"], [4])
    assert [row.name for row in rows] == ["first-seed4", "second-seed4"]
    assert rows[1].config.backbone.weights == str(rows[0].run)
    assert rows[0].config.backbone.weights == ""


def test_means_and_standard_deviations_are_over_the_seeds_that_have_a_figure():
    def found(share):
        return {"figures": {"macro_f1": share}, "seconds": 90, "peak_bytes": 2**30, "pictures": {}, "uncalibrated": "",
                "software": "0a1b"}  # fmt: skip

    row = Summary(variant(data="nih"), {0: found(0.6), 1: found(0.8), 2: found(None)})
    spread = row.figure("macro_f1")
    assert (spread.mean, spread.sd) == (pytest.approx(0.7), pytest.approx(0.1414, abs=1e-4))
    assert "| One | 3 | 0.700 ± 0.141 | - | - | 1.5 ± 0.0 | 1.0 ± 0.0 |" in page([row])
    assert "Made by software 0a1b" in page([row])
    assert Summary(variant(), {}).count == "0 of 3 (missing: seed 0, 1, 2)"


def test_a_variant_without_changes_is_its_settings_file():
    from medgrape.paper.real_films.variants import CONFIGS

    assert variant().config(0) == load_config(CONFIGS / "demo.toml")
