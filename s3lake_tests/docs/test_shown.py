"""What documents show: commands exist with these options, configurations load, Python compiles, data parse."""

import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import confluent_kafka
import dagster as dg
import pytest
import sqlglot
import yaml
from dagster._config import process_config
from dagster._core.instance.config import dagster_instance_config_schema
from dagster._core.workspace.load import location_origins_from_config

import s3lake
from s3lake import cli, errors
from s3lake.config.model import Config, Sink
from s3lake.demo.start import SINK
from s3lake.land.preview import preview
from s3lake.land.preview.record_lines import read_record_lines
from s3lake.land.request.in_process_tasks import KafkaRecord
from s3lake.source.kafka.client_properties import to_librdkafka
from s3lake_tests.config.bases import loads
from s3lake_tests.conftest import LONGEST_ONLY_ID, short_id
from s3lake_tests.docker.compose import SERVICES, parse_command
from s3lake_tests.docs.code_blocks import BLOCK, CodeBlock, find_blocks, read_title
from s3lake_tests.docs.documents import DOCUMENTS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_INLINE = re.compile(r"(?<!`)`(s3lake [^`]+)`(?!`)")
_LOADS = re.compile("INSTALL|LOAD|CREATE SECRET")
"""What DuckDB needs to reach S3, and fetches from elsewhere."""
TWENTY_FIRST = 1795255200000  # of November 2026
_ENDS = {"|", "&&", ";", "&"}
OTHERS = {"cd", "cp", "create-dagster", "duckdb", "export", "kafka-acls.sh", "python", "sed", "seq", "source", "unzip"}
"""Programs of others that the pages run."""


def of_languages(*languages: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", find_blocks(*languages), ids=short_id)


# Commands


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line of a shell, without assignments before them and files that they write."""
    command: list[str] = []
    for word in [*shlex.split(re.sub(r"\d?>\s*[\w./-]+", " ", line), comments=True), ";"]:
        if word in _ENDS:
            if command:
                yield command
            command = []
        elif command or not re.match(r"\w+=", word):
            command.append(word)


def shown_commands() -> list[tuple[str, list[str]]]:
    found = []
    for block in find_blocks("console", "sh"):
        text = block.text.replace("\\\n", " ")
        for line in text.splitlines():
            if block.language == "console":
                if not line.startswith("$ "):
                    continue
                line = line.removeprefix("$ ")
            found += [(f"{block}: {line}", command) for command in commands(line)]
    return found


def is_in_the_makefile(target: str) -> bool:
    return bool(re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize(
    "command", [pytest.param(command, id=short_id(name, LONGEST_ONLY_ID)) for name, command in shown_commands()]
)
def test_a_command_exists_and_has_these_options(command: list[str]) -> None:
    program, *arguments = command
    match program.rpartition("/")[2]:
        case "s3lake" if arguments[0].startswith("--"):
            assert arguments[0] in _options(cli.program())
        case "s3lake" | "dagster" | "dagster-webserver" | "dagster-daemon" as ours:
            parse_command([ours, *arguments])
        case "dg":
            from dagster_dg_cli.cli import create_dg_cli

            group: Any = create_dg_cli()
            for word in arguments[:2]:
                group = group.get_command(click.Context(group), word)
                assert group is not None, f"dg has no command {word}"
        case "make":
            assert is_in_the_makefile(arguments[0])
        case "docker":
            _is_of_the_stack(arguments)
        case "pip":
            for extras in re.findall(r"s3lake\[([\w,]+)\]", " ".join(arguments)):
                assert set(extras.split(",")) <= set(_project()["optional-dependencies"])
        case "python" | "pytest" if arguments[0].endswith(".py"):
            assert (ROOT / arguments[0]).is_file()
        case other:
            assert other in OTHERS, f"{other}: a program that is not in OTHERS"


def _is_of_the_stack(arguments: list[str]) -> None:
    compose, file, path, *rest = arguments
    assert (compose, file, (ROOT / path).is_file()) == ("compose", "-f", True)
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", ())}
    while rest[0] == "--profile":
        assert rest[1] in profiles
        rest = rest[2:]
    verb, *words = rest
    services = [word for word in words if not word.startswith("-")]
    assert set(services[:1] if verb == "exec" else services) <= set(SERVICES)


def _project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_extra_is_on_the_page_about_installing() -> None:
    table = (ROOT / "docs/install.md").read_text("utf-8").partition("| extra |")[2]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^(\|[^|]+\|)", table, re.MULTILINE)))
    assert sorted(named) == sorted(_project()["optional-dependencies"])


def mentioned() -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), text)
        for path in DOCUMENTS
        for text in dict.fromkeys(_INLINE.findall(BLOCK.sub("", path.read_text("utf-8"))))
    ]


@pytest.mark.parametrize(("document", "text"), mentioned())
def test_a_command_that_is_mentioned_exists_with_these_options(document: str, text: str) -> None:
    command: Any = cli.program()
    words = shlex.split(text.split(" > ")[0])[1:]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{document}: there is no s3lake {words[0]}"
        command = command.commands[words.pop(0)]
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= _options(command)


def _options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts} | {"--help"}


# Configurations

MINIMAL = {"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-11-20T00"}


def whole(document: dict[str, Any]) -> dict[str, Any]:
    """A configuration of which a document shows a part: of it, or of one of its sinks."""
    if document.keys() <= fields(Sink):
        document = {"sinks": [document]}
    sinks = [_sink(sink) for sink in document.get("sinks", [{}])]
    where = {} if "source" in document else {"kafka": {"bootstrap_servers": "kafka:9092"}}
    return {**where, **document, "sinks": sinks}


def _sink(shown: dict[str, Any]) -> dict[str, Any]:
    minimal = {name: value for name, value in MINIMAL.items() if name != "topics" or "topics_regex" not in shown}
    return {**minimal, **shown}


def fields(model: Any) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")  # Dagster's own, where it reads a component
@of_languages("yaml")
def test_yaml_is_a_configuration_or_a_part_of_one_or_settings_of_a_run_or_of_dagster(block: CodeBlock) -> None:
    document = yaml.safe_load(block.text)
    if "attributes" in document:  # of a component
        component = getattr(s3lake, document["type"].removeprefix("s3lake."))
        written = re.sub(r"\{\{ *env\.\w+ *\}\}", "kafka:9092", yaml.safe_dump(document["attributes"]))
        assert component.resolve_from_yaml(written)
        return
    if "ops" in document:  # of a run
        [operation] = document["ops"]
        sink = Sink.model_validate({**MINIMAL, "topics": ["orders", "clicks"], "together": True})
        config = Config.model_validate({"kafka": {"bootstrap_servers": "kafka:9092"}, "sinks": [sink]})
        jobs = s3lake.build_definitions(config).get_repository_def().get_all_jobs()
        [job] = [job for job in jobs if job.name != "__ASSET_JOB" and operation in job.graph.node_dict]
        assert dg.validate_run_config(job, document)
    elif document.keys() <= fields(Config) | fields(Sink):
        text = yaml.safe_dump(whole(document), sort_keys=False)
        known = {"LAKE_KEY": f"{'A' * 43}=", "S3LAKE_START": "2026-11-20T00"}
        variables = dict.fromkeys(re.findall(r"\$\{(\w+)", text), "kafka:9092") | known
        config = loads(text, str(block), None, variables).config
        _is_known_to_librdkafka(config.kafka.properties if config.kafka else {})
    elif "load_from" in document:
        assert location_origins_from_config(document, str(block))
    else:
        assert process_config(dagster_instance_config_schema(), document).errors in ([], None)


def _is_known_to_librdkafka(properties: dict[str, str]) -> None:
    for name, value in to_librdkafka(properties).items():
        refusal = ""
        try:
            confluent_kafka.Consumer({"group.id": "shown", "log_level": 0, name: value})
        except confluent_kafka.KafkaException as error:
            refusal = str(error)  # a file that is not here, or a property that needs another one
        assert "No such configuration property" not in refusal


@of_languages("properties", "json", "toml")
def test_a_connectors_file_loads_and_other_data_parse(block: CodeBlock) -> None:
    if block.language != "properties":
        (json if block.language == "json" else tomllib).loads(block.text)  # type: ignore[attr-defined]
    if re.search(r"connector\.class|plugin_config", block.text):
        variables = {"S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092", "S3LAKE_START": "2026-11-20T00"}
        variables |= dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", block.text), "x")
        assert loads(block.text, str(block), None, variables).config.sinks


def test_the_first_sink_takes_the_record_of_its_page_and_uses_no_index_of_the_demo(tmp_path: Path) -> None:
    [shown] = [block for block in find_blocks("yaml") if block.document == "docs/first-sink.md"]
    [record] = [block for block in find_blocks("json") if block.document == "docs/first-sink.md"]
    [sink] = loads(shown.text, str(shown), None, {"S3LAKE_START": "2026-11-22T00"}).config.sinks
    (tmp_path / read_title(record)).write_text(record.text)
    [made] = preview(sink, "orders", read_record_lines(tmp_path / read_title(record))).objects
    assert made.file.key == "first/orders/date=2026-11-22/hour=10/0-000000000000.parquet"
    assert sink.name != SINK


NATIVE_PAGES = ["concepts", "configure", "dagster", "first-sink", "instance", "monitoring", "operate", "project"]
NATIVE_PAGES += ["query", "scale", "security", "troubleshooting"]


@pytest.mark.parametrize("page", NATIVE_PAGES)
def test_a_setting_that_is_mentioned_is_one(page: str) -> None:
    text = BLOCK.sub("", (ROOT / f"docs/{page}.md").read_text("utf-8"))
    mentioned = re.findall(r"`((?:converter|errors|flush|format|index|layout|s3)\.[a-z_.]+)(?=[:`])", text)
    assert [path for path in mentioned if not _is_a_setting(path.split("."))] == []


def _is_a_setting(path: list[str]) -> bool:
    for model in (Config, Sink):
        part: Any = model
        for name in path:
            fields_here = getattr(part, "model_fields", {})
            if name not in fields_here:
                break
            annotations = [fields_here[name].annotation, *get_args(fields_here[name].annotation)]
            part = next((one for one in annotations if hasattr(one, "model_fields")), None)
        else:
            return True
    return False


def test_troubleshooting_has_every_error() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    leaves = {
        name
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, errors.S3LakeError) and error.__doc__
    } - {"S3LakeError", "TerminalError"}
    assert set(re.findall(r"^\| `(\w+Error)` \|", page, re.MULTILINE)) == leaves


# Programs


@of_languages("python")
def test_python_compiles_and_what_it_imports_is_there(block: CodeBlock) -> None:
    code = compile(block.text, str(block), "exec", dont_inherit=True)
    for module, name in re.findall(r"^from ([\w.]+) import (\w+)", block.text, re.MULTILINE):
        assert hasattr(importlib.import_module(module), name)
    for module in re.findall(r"^import ([\w.]+)", block.text, re.MULTILINE):
        importlib.import_module(module)
    for name in re.findall(r"s3lake\.([a-zA-Z]\w*)", block.text):
        assert hasattr(s3lake, name)
    assert code


def engine(block: CodeBlock) -> str:
    return read_title(block).lower()


@pytest.mark.parametrize("block", [block for block in find_blocks("sql") if engine(block) != "duckdb"], ids=short_id)
def test_sql_is_that_of_the_engine_that_it_is_for(block: CodeBlock) -> None:
    assert engine(block) in ("athena", "postgres", "trino", "spark")
    assert sqlglot.parse(block.text, dialect=engine(block))


@pytest.mark.parametrize("block", [block for block in find_blocks("sql") if engine(block) == "duckdb"], ids=short_id)
def test_duckdb_reads_what_the_sink_of_its_page_lands(block: CodeBlock, tmp_path: Path) -> None:
    import duckdb  # a tenth of a second, in all that collect

    [shown] = [other for other in find_blocks("yaml") if other.document == block.document]
    sink = Sink.model_validate(yaml.safe_load(shown.text.replace("${S3LAKE_START}", MINIMAL["start"])))
    values = [
        b'{"type": "%s", "id": %d, "amount": 2.5}' % (of, number) for number, of in enumerate([b"click", b"view"])
    ]
    records = [
        KafkaRecord("orders", 0, offset, TWENTY_FIRST, None, value, ()) for offset, value in enumerate(values * 3)
    ]
    for made in preview(sink, "orders", records).objects:
        path = tmp_path / made.file.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.body)
    statements = [text for text in block.text.split(";") if text.strip() and not _LOADS.match(text.strip())]
    rows = duckdb.sql(statements[-1].replace("s3://lake", str(tmp_path))).fetchall()
    assert rows == [("click", 3, 7.5), ("view", 3, 7.5)]


FILES = [block for block in find_blocks("yaml", "json", "properties", "python", "text") if "/" in read_title(block)]


@pytest.mark.parametrize("block", FILES, ids=short_id)
def test_a_block_that_is_called_like_a_file_is_that_file(block: CodeBlock) -> None:
    assert block.text == (ROOT / read_title(block)).read_text("utf-8")


def test_every_block_names_a_language_that_a_test_reads() -> None:
    looked_at = {"console", "sh", "yaml", "properties", "json", "toml", "python", "sql", "text"}
    every = {block.language for block in find_blocks(*looked_at, "", "ini", "dockerfile", "hcl", "mermaid")}
    assert every <= looked_at, [str(block) for block in find_blocks("")]
