"""docs/reference/ is what the code says, now; and the code says something of everything."""

import runpy
from typing import Any

import pytest

from s3lake.sink.describe import json_schema
from s3lake_tests.docs.test_links import ROOT

REFERENCE: dict[str, Any] = runpy.run_path(str(ROOT / "docs/reference.py"))


@pytest.mark.parametrize("page", REFERENCE["PAGES"])
def test_page_is_up_to_date(page: str) -> None:
    written = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    assert written == REFERENCE["PAGES"][page](), "run `make reference`"


def test_every_setting_says_what_it_means() -> None:
    schema = json_schema()
    parts = {"Config": schema, **schema["$defs"]}
    silent = [
        f"{name}.{setting}"
        for name, part in parts.items()
        for setting, definition in part["properties"].items()
        if not definition.get("description")
    ]
    assert silent == []


def test_a_default_is_shown_as_people_write_it() -> None:
    page = REFERENCE["settings"]()
    assert '| `size` | whole number or text | `"128MiB"` |' in page
    assert '| `interval` | number or text | `"5m"` |' in page
