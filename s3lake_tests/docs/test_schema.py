"""What docs/schemas.md prints is what happens: its sink lands records, in this process, and its commands are run."""

import json
import re
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.errors import GateError
from s3lake.land.hour.landing import land
from s3lake_tests.docs.documents import ROOT
from s3lake_tests.land.at_hand import FIRST, SECOND, TopicInMemory

PAGE = (ROOT / "docs/schemas.md").read_text("utf-8")
SHOWN = dict(re.findall(r'^```console title="s3lake ([^"]+)"\n(.*?)^```$', PAGE, re.M | re.S))


def sink() -> dict[str, Any]:
    """The settings of the sink of the page, but for its name and topic."""
    text = next(block for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S) if "schema:" in block)
    (settings,) = yaml.safe_load(text)["sinks"]
    return {name: value for name, value in settings.items() if name in ("format", "errors", "schema")}


@pytest.mark.parametrize("command", SHOWN)
def test_a_command_prints_what_the_page_shows(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = TopicInMemory(**sink())
    world.produce(0, b'{"id": 1, "to": {"zip": "a"}}', b'{"id": 2, "to": {"zip": "b"}}')
    world.produce(1, b'{"id": 3, "to": {"zip": "c", "street": "d"}, "note": "x"}', b'{"id": 4.5}', b'{"id": 5}')
    first, second = land(world.target(), [FIRST, SECOND])
    assert (second.sums.landed, second.sums.dead) == (2, 1)
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([world.target()]))
    printed = CliRunner().invoke(app, command.split(), catch_exceptions=False).stdout
    for name, hour in (("FIRST", first), ("SECOND", second)):
        printed = printed.replace(hour.tile.commits[0], name)
    assert [re.split(r"\s{2,}", " ".join(line.split())) for line in printed.splitlines()] == [
        re.split(r"\s{2,}", " ".join(line.split())) for line in SHOWN[command].splitlines()
    ]


def test_the_error_of_a_closed_gate_is_the_one_that_the_page_shows() -> None:
    world = TopicInMemory(**sink())
    world.produce(0, b'{"id": 1}', b'{"id": 2')
    world.produce(0, b"{")
    with pytest.raises(GateError) as error:
        land(world.target(), [FIRST])
    (shown,) = re.findall(r"^GateError: (.*)$", PAGE, re.M)
    assert str(error.value) == shown


def test_records_that_a_rule_refuses_are_dead_letters() -> None:
    world = TopicInMemory(**sink())
    world.produce(0, json.dumps({"id": 0}).encode(), *[b'{"id": 1}'] * 9)
    (landed,) = land(world.target(), [FIRST])
    assert (landed.sums.landed, landed.sums.dead) == (9, 1)
