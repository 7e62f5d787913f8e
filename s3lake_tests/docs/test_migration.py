"""The pages that lead from a connector to s3lake: their files result in what the pages show."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from s3lake import hours
from s3lake_tests.docs.code_blocks import CodeBlock, find_blocks, read_title
from s3lake_tests.kit.console import script

PAGES = sorted({block.document for block in find_blocks("yaml") if block.document.startswith("docs/migrate/")})
ENVIRONMENT = {
    "S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092",
    "S3LAKE_START": "2026-11-20T00",
    "IGGY_CONNECTORS_IGGY_ADDRESS": "iggy:8090",
    "IGGY_CONNECTORS_IGGY_USERNAME": "lake",
    "IGGY_CONNECTORS_IGGY_PASSWORD": "hunter2",
    "S3LAKE_SECRET_SOURCE_PASSWORD": "hunter2",
    "AWS_ACCESS_KEY_ID": "hunter2",
    "AWS_SECRET_ACCESS_KEY": "hunter2",
}


def on(page: str, *languages: str) -> list[CodeBlock]:
    return [block for block in find_blocks(*languages) if block.document == page]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, Path]]:
    """Runs a command in a directory that holds the page's files: what it printed, and where."""

    def run(page: str, *arguments: str) -> tuple[str, Path]:
        for block in on(page, "json", "properties", "toml"):
            (tmp_path / read_title(block)).write_text(block.text, encoding="utf-8")
        for name in list(os.environ):
            if name.startswith("S3LAKE_SINKS"):
                monkeypatch.delenv(name)
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(hours, "now_ms", lambda: hours.start_ms("2026-11-22T10"))  # the day that pages show
        monkeypatch.chdir(tmp_path)
        outcome = script(monkeypatch, capsys)(*arguments)
        assert outcome.code == 0, outcome
        return outcome.out, tmp_path

    return run


def connectors_file(page: str) -> str:
    return read_title(on(page, "json", "properties", "toml")[0])


@pytest.mark.parametrize("page", PAGES)
def test_the_file_converts_to_the_yaml_that_is_shown(page: str, run: Callable[..., tuple[str, Path]]) -> None:
    assert run(page, "convert", connectors_file(page))[0] == on(page, "yaml")[0].text


@pytest.mark.parametrize("page", PAGES)
def test_the_record_becomes_the_object_that_is_shown(page: str, run: Callable[..., tuple[str, Path]]) -> None:
    out, here = run(page, "preview", connectors_file(page), "--records", "records.jsonl", "--out", "objects")
    assert out == on(page, "text")[0].text
    assert (here / "objects" / out.split()[0]).is_file()


def test_there_is_a_page_for_each_connector() -> None:
    assert [Path(page).stem for page in PAGES] == ["aiven", "confluent", "iggy", "lenses"]
