"""docs/reference/ is written from the present code, and the code describes everything."""

import runpy
from typing import Any

import pytest

from s3lake.config.model.descriptions import json_schema
from s3lake_tests.docs.documents import ROOT

REFERENCE: dict[str, Any] = runpy.run_path(str(ROOT / "docs/reference.py"))


@pytest.mark.parametrize("page", REFERENCE["PAGES"])
def test_page_is_up_to_date(page: str) -> None:
    written = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    assert written == REFERENCE["PAGES"][page](), "run `make reference`"


def test_every_setting_has_a_description() -> None:
    schema = json_schema()
    parts = {"Config": schema, **schema["$defs"]}
    silent = [
        f"{name}.{setting}"
        for name, part in parts.items()
        for setting, definition in part["properties"].items()
        if not definition.get("description")
    ]
    assert silent == []


# Every key of every connector's own definition is honoured, reported or refused; nearly all are honoured or harmless


KEYS: dict[str, Any] = runpy.run_path(str(ROOT / "docs/keys.py"))
DEFINITIONS = KEYS["DEFINITIONS"]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.title)
def test_at_most_one_in_20_keys_of_a_connector_is_refused(definition: Any) -> None:
    harmless, every = KEYS["counted"](definition)
    assert every - harmless <= max(1, every // 20)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.title)
def test_every_key_is_known_and_none_is_dropped_without_a_word(definition: Any) -> None:
    outcomes = KEYS["outcomes"](definition)
    assert [one.key.name for one in outcomes if one.becomes == "silent" or "unknown key" in one.explanation] == []


def test_no_property_of_kcql_is_dropped_without_a_word() -> None:
    outcomes = [one for definition in DEFINITIONS for one in KEYS["outcomes_of_properties"](definition)]
    assert outcomes != []
    assert [one.key.name for one in outcomes if one.becomes == "silent"] == []
