"""The bill of materials names what is installed and what is built into the page."""

import json

import pytest
from cyclonedx.validation.json import JsonStrictValidator
from release.page_parts import page_parts
from release.sbom import SCHEMA, merged
from release.steps import RefusedError

TEXT = "Permission is hereby granted, free of charge, to any person. " * 5
NOTICES = "\n\n".join(
    (
        "# Licenses",
        "## @tan/query - 5.1.0 (MIT)",
        TEXT,
        "## react - 19.3.1 (MIT)",
        TEXT,
        "## wouter - 3.0.0 (Unlicense)\n",
    )
)
LISTED = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": {"bom-ref": "root-component", "name": "medgrape", "type": "application"}},
    "components": [{"bom-ref": "numpy==2.4", "name": "numpy", "version": "2.4", "type": "library"}],
    "dependencies": [{"ref": "root-component", "dependsOn": ["numpy==2.4"]}, {"ref": "numpy==2.4"}],
}


@pytest.fixture
def lock(tmp_path):
    names = {"@tan/query": "5.1.0", "react": "19.3.1", "wouter": "3.0.0"}
    packages = {f"node_modules/{name}": {"version": one, "integrity": "sha512-AAEC"} for name, one in names.items()}
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"react": "19.3.1", "wouter": "3.0.0"}}))
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": packages}))
    return tmp_path / "package-lock.json"


def test_parts_of_the_page_stand_beside_installed_packages(lock):
    parts = [part for part in page_parts(NOTICES, lock) if part.sha512 == "000102"]
    bill = merged(LISTED, "0.1.0", parts)
    assert [one["name"] for one in bill["components"]] == ["numpy", "@tan/query", "react", "wouter"]
    assert bill["metadata"]["component"]["version"] == "0.1.0"
    assert bill["dependencies"][0]["dependsOn"] == [
        "numpy==2.4",
        "pkg:npm/%40tan/query@5.1.0",
        "pkg:npm/react@19.3.1",
        "pkg:npm/wouter@3.0.0",
    ]


def test_the_merged_bill_fits_the_schema_and_a_broken_one_does_not(lock):
    parts = page_parts(NOTICES, lock)
    whole = [part.__class__(part.name, part.version, part.licence, "ab" * 64) for part in parts]
    bill = merged(LISTED, "0.1.0", whole)
    assert JsonStrictValidator(SCHEMA).validate_str(json.dumps(bill)) is None
    assert JsonStrictValidator(SCHEMA).validate_str(json.dumps(bill | {"components": [{"name": "?"}]})) is not None


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("react - 19.3.1", "react - 18.0.0", "package-lock.json has 19.3.1"),
        ("## wouter - 3.0.0 (Unlicense)\n", "", "do not name wouter"),
        (f"(MIT)\n\n{TEXT}\n\n## wouter", "(MIT)\n\n## wouter", "do not hold the text"),
    ],
)
def test_notices_that_do_not_tell_all_are_refused(lock, was, becomes, why):
    assert was in NOTICES
    with pytest.raises(RefusedError, match=why):
        page_parts(NOTICES.replace(was, becomes), lock)
