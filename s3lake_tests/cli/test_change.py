"""Commands that change what has landed: without --yes they print what they would do, change nothing, and end with 0.

`adopt`, `table sync` and `ddl --for glue` are in adopt/test_continues.py and lake/table/iceberg/test_commands.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from s3lake import hours
from s3lake.cli import app
from s3lake.cli.request import Request
from s3lake.index.commit.documents import Manifest, Read
from s3lake.land.topic import open_topic_sink
from s3lake.land.topic.topic_sink import TopicSink
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.offsets import LogRange, TopicOffsets
from s3lake_tests.kit.lake import NOBODY
from s3lake_tests.kit.sinks import make_config
from s3lake_tests.lake.verify.world import HOUR, TOPIC
from s3lake_tests.land.change.parts import Parts
from s3lake_tests.land.change.refused import MENDED, LakeWithRefusals


class RecreatedTopic:
    """A topic of one topic-partition that was created again and has 1,000 records."""

    def log_ranges(self, _: str) -> Mapping[int, tuple[int, int]]:
        return {0: (0, 1000)}

    def snapshot(self, *_: str, **__: bool) -> TopicOffsets:
        return TopicOffsets("present", {0: LogRange(0, 1000, 0, 1000)})


def target_of(lake: LakeWithRefusals) -> TopicSink:
    return replace(lake.target(), offsets=RecreatedTopic())


def leave_a_manifest(lake: LakeWithRefusals) -> None:
    """A writer crashed long ago."""
    lake.index.record(Manifest("dead", TOPIC, HOUR, {0: Read(0, 1)}, created_ms=hours.start_ms("2020-01-01T00")))


def leave_a_commit_pending(lake: LakeWithRefusals) -> None:
    stored = lake.index.tile(HOUR)
    assert stored is not None
    lake.index.record(Manifest("stuck", TOPIC, HOUR, {0: Read(0, 3)}))
    assert lake.index.swap_tile(stored[0].revise(pending="stuck"), stored[1])


def correct_the_layout(lake: LakeWithRefusals) -> None:
    lake.mended(**MENDED)


def compress(lake: LakeWithRefusals) -> None:
    lake.mended(format={"type": "json", "codec": "gzip"})


def leave_it(lake: LakeWithRefusals) -> None:
    """Nothing has to be prepared."""


RESTORE = ("restore", "--into", "again", "--without", "key", "--without", "headers", "--without", "timestamp")
COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[LakeWithRefusals], None], str]] = {
    "rewrite": (("rewrite", "--from", HOUR, "--to", HOUR), leave_it, "would be landed again"),
    "clean": (("clean",), leave_a_manifest, "would be removed"),
    "compact": (("compact",), leave_it, "bytes become 2"),
    "erase": (("erase", "--where", "true", "--dead-letters", "true"), leave_it, "records"),
    "reformat": (("reformat",), compress, "files"),
    "retention": (("retention", "--older-than", "1d"), leave_it, "11 records in 4 files of"),
    "restore": ((*RESTORE, "--from", HOUR, "--to", HOUR), leave_it, "records"),
    "replay": (
        ("dead-letters", "replay"),
        correct_the_layout,
        f"events verified {HOUR}: 3 dead letters: 2 can be landed, 1 stays a dead letter, "
        "1 for convert: JSON is malformed: expected … (byte …)\n",
    ),
    "rollback": (
        ("index", "rollback", "--sink", "events", "--topic", TOPIC, "--hour", HOUR),
        leave_a_commit_pending,
        "would be rolled back",
    ),
    "accept": (("index", "accept", "--topic", TOPIC), leave_it, "would begin at"),
}


def run(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], *lakes: LakeWithRefusals) -> Result:
    """Run a command on the topic of each lake, whatever is configured."""
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([target_of(lake) for lake in lakes]))
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_yes_prints_what_it_would_do_changes_nothing_and_ends_with_0(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words, prepare, summary = COMMANDS[name]
    lake = LakeWithRefusals().landed(7, 4)
    prepare(lake)
    config = tmp_path / "s3lake.yaml"
    config.write_text(NOBODY)
    before = dict(lake.store.objects)
    done = run(monkeypatch, (*words, str(config)), lake)
    assert done.exit_code == 0, (done.output, done.exception)
    assert summary in done.stdout
    assert done.stdout.endswith("\nnothing is changed yet: --yes does it\n")
    assert lake.store.objects == before


@pytest.mark.parametrize("confirmation", [(), ("--yes",)], ids=["without --yes", "with --yes"])
def test_a_rewrite_of_an_hour_with_erased_records_is_refused(
    confirmation: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeWithRefusals().landed(7, 4)
    erased = run(monkeypatch, ("erase", "--where", "true", "--dead-letters", "true", "--yes"), lake)
    assert erased.exit_code == 0, erased.output
    before = dict(lake.store.objects)
    refused = run(monkeypatch, (*COMMANDS["rewrite"][0], *confirmation), lake)
    assert refused.exit_code == 3
    assert "11 of its records were erased, or expired by retention" in refused.output
    assert "would be landed again" not in refused.output
    assert lake.store.objects == before


@pytest.mark.parametrize(
    ("name", "done", "again"),
    [
        ("clean", f"{HOUR}, commit dead: delete manifest, 0 files", "nothing to remove"),
        (
            "rollback",
            f"{HOUR}: commit stuck is rolled back; the next run reads its 3 offsets again, 0 of them expired",
            "there is nothing to roll back",
        ),
        ("accept", "hours of the present topic begin at 2026-11-20T06", "there is nothing to accept"),
    ],
)
def test_a_command_with_yes_does_it_once(name: str, done: str, again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, prepare, _ = COMMANDS[name]
    lake = LakeWithRefusals().landed(7, 4)
    prepare(lake)
    assert run(monkeypatch, (*words, "--yes"), lake).stdout == f"events {TOPIC} {done}\n"
    second = run(monkeypatch, (*words, "--yes"), lake)
    assert again in second.output + str(second.exception)


def test_a_sink_that_has_nothing_to_accept_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    words, _, _ = COMMANDS["accept"]
    done = run(monkeypatch, (*words, "--yes"), LakeWithRefusals().landed(7), LakeWithRefusals(name="copies"))
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        [
            f"events {TOPIC} hours of the present topic begin at 2026-11-20T06",
            f"copies: topic '{TOPIC}' has no index yet: there is nothing to accept",
        ],
    )


def test_landed_topics_of_an_expression_are_changed_also_if_kafka_has_them_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Parts(topics=[], topics_regex=f"{TOPIC}.*").land(b'{"id": 1}')
    monkeypatch.setattr(open_topic_sink, "open_stores", lambda *_, **__: lambda _: world.store)
    monkeypatch.setattr(KafkaOffsets, "topics", lambda _: [f"{TOPIC}-new"])
    config = make_config(world.sink)
    assert [target.topic for target in Request().targets(config, tables=True)] == [f"{TOPIC}-new", TOPIC]
    assert [target.topic for target in Request().targets(config)] == [f"{TOPIC}-new"]
