"""Secrets that are planted in every place that takes one are in nothing that is printed, kept or shown.

`planted.py` is the table of places. The server here refuses all requests, and repeats what it received.
"""

import json
import logging
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.snap import JobSnap
from dagster_aws.s3 import S3Resource

import s3lake
from s3lake import cli, definitions
from s3lake.config import load as configuration
from s3lake.config import native
from s3lake.errors import ConfigurationError
from s3lake.index.store.s3_connection import S3Connection
from s3lake.lake.forwarding.destination import open_destination
from s3lake.land.hour.landing import land
from s3lake.land.topic import open_topic_sink
from s3lake.orchestration.build import build_definitions
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake_tests import planted
from s3lake_tests.conftest import slow_after
from s3lake_tests.kit.http import serve
from s3lake_tests.kit.lake import START
from s3lake_tests.lake.forwarding.landed import land_values
from s3lake_tests.land.at_hand import FIRST, TopicInMemory
from s3lake_tests.planted import PLACES, Words

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def words() -> Iterator[Words]:
    with serve(planted.repeat_request) as url:
        yield Words(url)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kafka that is not there is given up at once."""
    begin = KafkaOffsets.__init__
    monkeypatch.setattr(
        KafkaOffsets, "__init__", lambda self, servers, properties=None, *_: begin(self, servers, properties, 0.2)
    )


@pytest.fixture(params=PLACES)
def config(request: pytest.FixtureRequest, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose secrets are planted."""
    for name, value in planted.ENVIRONMENT.items():
        monkeypatch.setenv(name, words.plant(value))
    path: Path = tmp_path / request.param
    path.write_text(words.plant(PLACES[request.param]))
    return path


COMMANDS = {
    "check": "check CONFIG",
    "land": "land CONFIG",
    "check --all": "check CONFIG --all",
    "check --json": "check CONFIG --json",
    "check --connect": "check CONFIG --connect",
    "convert": "convert CONFIG",
    "preview": "preview CONFIG --records RECORDS",
    "iam": "iam CONFIG",
    "ddl": "ddl CONFIG --for athena",
    "verify": "verify CONFIG",
    "index show": "index show CONFIG",
    "clean": "clean CONFIG",
    "metrics": "metrics CONFIG",
    "status": "status CONFIG",
    "dead-letters list": "dead-letters list CONFIG",
}


def _shown_by(command: str, config: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command prints, and its error with all that led to it, as Dagster would show it."""
    records = config.with_name("records.jsonl")
    arguments = [str({"CONFIG": config, "RECORDS": records}.get(word, word)) for word in command.split()]
    raised = ""
    try:
        cli.program().main(arguments, standalone_mode=False)
    except BaseException:
        raised = traceback.format_exc()
    out, err = capfd.readouterr()
    return out + err + raised


@pytest.mark.parametrize("command", slow_after(2, "the same search of another command or surface", COMMANDS))
def test_no_command_prints_a_secret(
    command: str, config: Path, words: Words, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "s3lake")
    record = words.plant(planted.RECORD.decode())
    config.with_name("records.jsonl").write_text(json.dumps({"topic": "orders", "value": record}) + "\n")
    shown = _shown_by(COMMANDS[command], config, capfd)
    assert len(shown) > 20
    assert "ConfigurationError" not in shown or config.name == "plugin.yaml", shown
    assert words.seen(shown + caplog.text) == []


def _lines(text: str) -> list[int]:
    """Return the numbers of the lines that contain a secret."""
    return [number for number, line in enumerate(text.splitlines()) if planted.PLACE.search(line)]


@pytest.mark.slow("the same search of another command or surface")
@pytest.mark.parametrize("name", PLACES)
def test_no_error_of_a_configuration_shows_a_secret(name: str, words: Words, tmp_path: Path) -> None:
    """Yield the text with each place renamed, made a list, repeated, and next to a key that is refused."""
    text = PLACES[name]
    environment = {name: words.plant(value) for name, value in planted.ENVIRONMENT.items()}
    refused = 0
    for number in _lines(text):
        lines = text.splitlines()
        line = lines[number]
        for wrong in (
            f"x{line}",
            f"{line}\n{line}",
            planted.PLACE.sub(r"[<<\1>>]", line),
            f"{line} x: y",
            f"{line}]}}",
        ):
            path = tmp_path / name
            path.write_text(words.plant("\n".join([*lines[:number], wrong, *lines[number + 1 :]])))
            try:
                configuration.load_configuration(str(path), environment=environment)
            except ConfigurationError:
                refused += 1
                assert words.seen(traceback.format_exc()) == [], wrong
    assert refused


@pytest.mark.slow("the same search of another command or surface")
def test_no_object_of_a_configuration_and_no_definition_shows_a_secret(config: Path, words: Words) -> None:
    settings = configuration.load_configuration(str(config)).config
    parts = [settings.kafka, settings.source, settings.s3, settings.spark, *settings.sinks]
    connections = [
        S3Connection.from_settings(settings.s3),
        *(S3Connection.from_settings(sink.s3) for sink in settings.sinks if sink.s3),
    ]
    message = [repr(part) + str(part) for part in (settings, *parts, *connections)]
    dumped = [
        native.write_native(settings)[0],
        json.dumps(settings.model_dump(mode="json")),
    ]
    assert words.seen("\n".join([*message, *dumped])) == []


def _shown_by_dagster(built: dg.Definitions) -> list[str]:
    """The code location as the web server gets it, and the texts of its objects."""
    repository = built.get_repository_def()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster reads a deprecated attribute of its own schedules
        shown = [dg.serialize_value(RepositorySnap.from_def(repository))]
    jobs = repository.get_all_jobs()
    shown += [dg.serialize_value(JobSnap.from_job_def(job)) for job in jobs]
    objects: list[Any] = [built.resources, repository, vars(built), *(job.resource_defs for job in jobs)]
    return [*shown, *map(repr, objects), *map(str, objects)]


@pytest.mark.slow("the same search of another command or surface")
@pytest.mark.parametrize("name", [name for name in PLACES if name != "plugin.yaml"])
def test_nothing_that_dagster_shows_and_keeps_has_a_secret(
    name: str, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The code location, and a run that everybody refuses: its configuration and events."""
    for variable, value in planted.ENVIRONMENT.items():
        monkeypatch.setenv(variable, words.plant(value))
    path = tmp_path / name
    path.write_text(words.plant(PLACES[name]))
    monkeypatch.setenv("S3LAKE_CONFIG", str(path))
    monkeypatch.setenv("S3LAKE_SINKS_EVENTS_ERRORS_MAX_RETRIES", "0")
    built = definitions.defs()
    repository = built.get_repository_def()
    shown = _shown_by_dagster(built)
    with dg.DagsterInstance.ephemeral() as instance:
        run = repository.get_job("land_events").execute_in_process(
            instance=instance, partition_key="2026-01-05T00", raise_on_error=False
        )
        assert not run.success
        shown += [dg.serialize_value(run.dagster_run), str(run.dagster_run.run_config), str(run.dagster_run.tags)]
        events = instance.all_logs(run.run_id)
        assert any(event.dagster_event and event.dagster_event.is_step_failure for event in events)
        shown += [event.to_json() for event in events]
    out, err = capfd.readouterr()
    assert words.seen("\n".join([*shown, out, err])) == []


@pytest.mark.slow("the same search of another command or surface")
def test_a_stand_in_s_secrets_are_those_of_its_environment(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", words.plant("<<secret of a double>>"))
    settings = native.load_text(words.plant(PLACES["connect.yaml"]), "connect.yaml")
    stand_in = S3Resource(aws_access_key_id="ID", aws_secret_access_key=dg.EnvVar("LAKE_SECRET"))
    shown = _shown_by_dagster(build_definitions(settings, resources={"s3": stand_in}))
    assert words.seen("\n".join(shown)) == []


@pytest.mark.slow("the same search of another command or surface")
def test_no_document_of_the_index_and_no_object_has_a_secret(words: Words) -> None:
    keys = {"access_key_id": "AKIA", "secret_access_key": words.plant("<<secret key of a sink>>")}
    world = TopicInMemory(s3={"credentials": keys, "objects": {"customer_key": words.plant("<<a key of 32 bytes>>")}})
    world.produce(0, b'{"id": 1}')
    land(world.target(), [FIRST])
    documents = [body.decode() for key, (body, _) in world.store.objects.items() if key.startswith(".indexes/")]
    assert len(documents) >= 3
    assert words.seen("".join(documents) + repr(world.store.objects)) == []


@pytest.mark.slow("the same search of another command or surface")
@pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`:dagster.BetaWarning")
@pytest.mark.parametrize(("name", "settings"), planted.DESTINATIONS)
def test_nothing_that_hours_are_forwarded_to_shows_a_secret(
    name: str, settings: dict[str, str], words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made wrongly, then rightly: its asset as Dagster shows it, and a run in which it does not take an hour."""
    monkeypatch.setattr("s3lake.lake.forwarding.mongodb.CONNECT_MS", 50)
    options = {option: words.plant(value) for option, value in settings.items()}
    with pytest.raises(ConfigurationError) as refused:
        open_destination(name, {**options, "unheard": "of"})
    shown = ["".join(traceback.format_exception(refused.value))]
    sink = f"{{name: events, topics: [clicks], bucket: lake, start: {START}, errors: {{max_retries: 0}}}}"
    config = native.load_text(f"kafka: {{bootstrap_servers: 127.0.0.1:1}}\nsinks: [{sink}]\n", "f")
    try:
        assets = s3lake.forward(config, "events", to=name, options=options)
    except ConfigurationError:
        shown.append(traceback.format_exc())
        assets = []
    with land_values(tmp_path) as land, dg.DagsterInstance.ephemeral() as instance:
        store = land("1").store
        monkeypatch.setattr(open_topic_sink, "open_stores", lambda *_, **__: lambda _: store)
        definitions = dg.Definitions.merge(s3lake.build_definitions(config), dg.Definitions(assets=assets))
        shown.append(dg.serialize_value(JobSnap.from_job_def(definitions.resolve_implicit_global_asset_job_def())))
        for asset in assets:
            run = definitions.resolve_implicit_global_asset_job_def().execute_in_process(
                asset_selection=[asset.key], partition_key=START, instance=instance, raise_on_error=False
            )
            assert not run.success
            shown += [event.to_json() for event in instance.all_logs(run.run_id)]
            assert f"{name} 127.0.0.1" in "".join(shown) or "cannot be read" in "".join(shown)
    assert words.seen("\n".join(shown)) == []


@pytest.mark.slow("the same search of another command or surface")
@pytest.mark.parametrize("address", ["vault.properties", "<<server>>/lake.properties?key=<<key in an address>>"])
def test_no_error_of_the_place_of_a_configuration_shows_a_secret(address: str, words: Words, tmp_path: Path) -> None:
    """Vault and a web server, which both refuse."""
    settings = {"VAULT_ADDR": "<<server>>", "VAULT_TOKEN": "<<vault token>>"}
    text = PLACES["aiven.properties"].replace("<<secret key>>", "${vault:secret/lake/s3:key}")
    (tmp_path / "vault.properties").write_text(words.plant(text))
    place = words.plant(address) if "<<" in address else str(tmp_path / address)
    environment = {name: words.plant(value) for name, value in settings.items()}
    with pytest.raises(ConfigurationError) as refused:
        configuration.load_configuration(place, environment=environment)
    assert words.seen("".join(traceback.format_exception(refused.value))) == []
