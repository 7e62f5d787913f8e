"""The page of the architecture: its picture is as the imports are, and the files that it names exist."""

import re
import runpy
from typing import Any

from s3lake_tests.docs.documents import ROOT

DRAWING: dict[str, Any] = runpy.run_path(str(ROOT / "docs/architecture.py"))
PAGE = ROOT / "docs/design/architecture.md"


def test_the_picture_is_as_the_imports_are() -> None:
    drawn = DRAWING["draw"](DRAWING["find_arrows"]())
    assert DRAWING["PICTURE"].read_text(encoding="utf-8") == drawn, "run `make reference`"


def test_each_arrow_has_its_words_and_no_words_lack_an_arrow() -> None:
    assert DRAWING["TAKES"].keys() == DRAWING["find_arrows"]()


def test_the_picture_has_each_room_of_the_package() -> None:
    assert DRAWING["ROOMS"].keys() == DRAWING["find_rooms"]()


def test_no_arrow_goes_against_the_order() -> None:
    order = list(DRAWING["ROOMS"])
    assert [pair for pair in DRAWING["find_arrows"]() if order.index(pair[0]) > order.index(pair[1])] == []


def test_the_files_to_begin_reading_with_exist() -> None:
    begin = re.findall(r"\d\. (\S+\.py):", "\n".join(DRAWING["BEGIN"]))
    path = re.findall(r"^\d+\. `(\S+\.py)`:", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert (len(begin), len(path)) == (5, 10)
    missing = [name for name in [*(f"s3lake/{name}" for name in begin), *path] if not (ROOT / name).is_file()]
    assert missing == []
