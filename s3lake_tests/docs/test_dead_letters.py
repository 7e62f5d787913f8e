"""The commands of docs/dead-letters.md, run one after the other on an hour in memory, print what is shown there."""

import re
import shlex
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake_tests.docs.code_blocks import find_blocks
from s3lake_tests.lake.verify.world import TOPIC
from s3lake_tests.land.change.parts import Record
from s3lake_tests.land.change.refused import GOOD, MENDED, LakeWithRefusals

TOKEN = b'{"id":1,"card_token":"4111-1111"}'
REGION: list[tuple[str, bytes | None]] = [("region", b"eu"), ("authorization", b"Bearer x")]

COMMITS: list[list[Record]] = [
    [(b"k0", GOOD % 0, []), (b"k1", TOKEN, REGION), (b"k2", GOOD % 2, []), (b"k3", b'{"at":"noon"}', [])],
    [(b"k4", GOOD % 4, []), (b"k5", b'{"id":5}', []), (b"k6", b"{ broken", []), (b"k7", b"\xff", [])],
]


def shown() -> Iterator[tuple[str, str]]:
    """Commands, and what they print."""
    for block in find_blocks("console"):
        if block.document == "docs/dead-letters.md":
            for command in block.text.removeprefix("$ ").split("\n$ "):
                words, _, printed = command.partition("\n")
                yield words, printed


def plain(text: str) -> list[list[str]]:
    """Lines as words, commits apart."""
    return [line.split() for line in re.sub(r"\b[0-9a-f]{32}\b", "COMMIT", text).splitlines() if line.strip()]


def test_the_commands_print_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeWithRefusals()
    for records in COMMITS:
        lake.land_records(records)
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([lake.target()]))
    count = 0
    for command, printed in shown():
        count += 1
        if command.endswith("replay --hour 2026-11-20T05"):
            lake.mended(**MENDED)
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
        assert plain(result.stdout.replace(TOPIC, "orders")) == plain(printed), command
    assert count == 5
    assert lake.verified().clean
