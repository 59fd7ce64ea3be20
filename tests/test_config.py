import pytest
from pydantic import ValidationError

from medgrape.cli.options import config_with
from medgrape.config import RECIPES, Config, ConfigError, load_config, parse_config


def test_without_a_file_the_settings_are_the_defaults():
    assert load_config(None) == Config()


def test_a_file_changes_only_its_keys(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[preprocessing]\nsize = 320\n")
    assert load_config(file).preprocessing.size == 320
    assert load_config(file).limits == Config().limits


def test_a_recipe_is_found_beside_a_folder_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    assert load_config("demo") == load_config(RECIPES / "demo.toml")
    with pytest.raises(ConfigError, match="there is no such file"):
        load_config(tmp_path)


def test_an_option_wins_over_the_file_and_a_default_does_not(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[preprocessing]\nsize = 320\n[limits]\nmax_pixels = 1000\n")
    assert config_with(file).limits.max_pixels == 1000
    both = config_with(file, size=512)
    assert (both.preprocessing.size, both.limits.max_pixels) == (512, 1000)


def test_a_mistyped_key_gives_the_nearest_one():
    with pytest.raises(ConfigError, match=r"limits\.max_pixel.*did you mean 'max_pixels'"):
        parse_config({"limits": {"max_pixel": 3}})
    with pytest.raises(ConfigError, match="did you mean 'preprocessing'"):
        parse_config({"preprocesing": {}})


@pytest.mark.parametrize("value", [0, -1, "224", 10.5, True])
def test_an_invalid_size_is_refused_with_its_value(value):
    with pytest.raises(ConfigError, match=r"preprocessing\.size"):
        parse_config({"preprocessing": {"size": value}})


def test_settings_do_not_change_after_loading():
    with pytest.raises(ValidationError):
        Config().preprocessing.size = 3


def test_a_missing_or_invalid_file_gives_an_error(tmp_path):
    with pytest.raises(ConfigError, match="Cannot read"):
        load_config(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[limits\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(broken)
