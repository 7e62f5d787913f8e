"""What documents show: commands exist with these options, configurations load, Python compiles, data parse."""

import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka
import pytest
import sqlglot
import typer
import yaml
from dagster._config import process_config
from dagster._core.instance.config import dagster_instance_config_schema

from s3lake.cli import app
from s3lake.config import native
from s3lake.config.loading import loads
from s3lake.kafka.properties import client_properties
from s3lake.sink import Config, Sink
from s3lake_tests.docker.test_docker import SERVICES, parsed
from s3lake_tests.test_links import DOCUMENTS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BLOCK = re.compile(r"^(?P<fence>```+)(?P<language>\w*)[ ]*(?P<title>[^\n]*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)
_INLINE = re.compile(r"(?<!`)`(s3lake [^`]+)`(?!`)")
_ENDS = {"|", "&&", ";", "&"}
OTHERS = {
    "aws",
    "cat",
    "cd",
    "cp",
    "curl",
    "duckdb",
    "export",
    "git",
    "kill",
    "pip",
    "python",
    "seq",
    "source",
    "spark-sql",
}
"""Programs of others, which readers are told to run."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    document: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        for block in _BLOCK.finditer(text):
            if block["language"] in languages:
                name, line = document.relative_to(ROOT).as_posix(), text.count("\n", 0, block.start()) + 1
                found.append(Block(name, line, block["language"], block["title"], block["text"]))
    return found


def of_languages(*languages: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", blocks(*languages), ids=str)


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
    for block in blocks("console", "sh"):
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
    "command", [command for _, command in shown_commands()], ids=[name for name, _ in shown_commands()]
)
def test_a_command_exists_and_has_these_options(command: list[str]) -> None:
    program, *arguments = command
    match program.rpartition("/")[2]:
        case "s3lake" | "dagster" | "dagster-webserver" | "dagster-daemon" as ours:
            parsed([ours, *arguments])
        case "make":
            assert is_in_the_makefile(arguments[0])
        case "docker":
            _is_of_the_stack(arguments)
        case "pip":
            for extras in re.findall(r"s3lake\[([\w,]+)\]", " ".join(arguments)):
                assert set(extras.split(",")) <= set(_project()["optional-dependencies"])
        case "python" if arguments[0].endswith(".py"):
            assert (ROOT / arguments[0]).is_file()
        case "pytest" | "run" | "sed":
            pass
        case other:
            assert other in OTHERS, f"{other}: a program that nobody has looked for"


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


def mentioned() -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), text)
        for path in DOCUMENTS
        for text in dict.fromkeys(_INLINE.findall(_BLOCK.sub("", path.read_text("utf-8"))))
    ]


@pytest.mark.parametrize(("document", "text"), mentioned())
def test_a_command_that_is_mentioned_exists_with_these_options(document: str, text: str) -> None:
    command: Any = typer.main.get_command(app)
    words = shlex.split(text.split(" > ")[0])[1:]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{document}: there is no s3lake {words[0]}"
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options


# Configurations

MINIMAL = {"name": "events", "topics": ["orders"], "bucket": "lake", "start": "2026-11-20T00"}


def whole(document: dict[str, Any]) -> dict[str, Any]:
    """A configuration of which a document shows a part: of it, or of one of its sinks."""
    if document.keys() <= fields(Sink):
        document = {"sinks": [document]}
    sinks = [_sink(sink) for sink in document.get("sinks", [{}])]
    return {"kafka": {"bootstrap_servers": "kafka:9092"}, **document, "sinks": sinks}


def _sink(shown: dict[str, Any]) -> dict[str, Any]:
    minimal = {name: value for name, value in MINIMAL.items() if name != "topics" or "topics_regex" not in shown}
    return {**minimal, **shown}


def fields(model: Any) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@of_languages("yaml")
def test_yaml_is_a_configuration_or_a_part_of_one_or_settings_of_dagsters_instance(block: Block) -> None:
    document = yaml.safe_load(block.text)
    if document.keys() <= fields(Config) | fields(Sink):
        text = yaml.safe_dump(whole(document), sort_keys=False)
        variables = dict.fromkeys(re.findall(r"\$\{(\w+)", text), "kafka:9092")
        config = native.loaded(text, str(block), variables).config
        _is_known_to_librdkafka(config.kafka.properties)
    else:
        assert process_config(dagster_instance_config_schema(), document).errors in ([], None)


def _is_known_to_librdkafka(properties: dict[str, str]) -> None:
    for name, value in client_properties(properties).items():
        refusal = ""
        try:
            confluent_kafka.Consumer({"group.id": "shown", "log_level": 0, name: value})
        except confluent_kafka.KafkaException as error:
            refusal = str(error)  # a file that is not here, or a property that wants another one beside it
        assert "No such configuration property" not in refusal


@of_languages("properties", "json", "toml")
def test_a_connectors_file_loads_and_other_data_parse(block: Block) -> None:
    if block.language != "properties":
        (json if block.language == "json" else tomllib).loads(block.text)  # type: ignore[attr-defined]
    if re.search(r"connector\.class|plugin_config", block.text):
        variables = {"S3LAKE_BOOTSTRAP_SERVERS": "kafka:9092", "S3LAKE_START": "2026-11-20T00"}
        variables |= dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", block.text), "x")
        assert loads(block.text, str(block), None, variables).config.sinks


# Programs


@of_languages("python")
def test_python_compiles_and_what_it_imports_is_there(block: Block) -> None:
    code = compile(block.text, str(block), "exec", dont_inherit=True)
    for module, name in re.findall(r"^from ([\w.]+) import (\w+)", block.text, re.MULTILINE):
        assert hasattr(importlib.import_module(module), name)
    for module in re.findall(r"^import ([\w.]+)", block.text, re.MULTILINE):
        importlib.import_module(module)
    for name in re.findall(r"s3lake\.([a-zA-Z]\w*)", block.text):
        assert hasattr(importlib.import_module("s3lake"), name)
    assert code


@of_languages("sql")
def test_sql_is_that_of_the_engine_that_it_is_for(block: Block) -> None:
    engine = block.title.removeprefix("title=").strip('"').lower()
    assert engine in ("duckdb", "athena", "trino", "spark")
    assert sqlglot.parse(block.text, dialect=engine)


def test_every_block_says_what_it_is_of_and_is_of_a_sort_that_is_looked_at() -> None:
    looked_at = {"console", "sh", "yaml", "properties", "json", "toml", "python", "sql", "text"}
    every = {block.language for block in blocks(*looked_at, "", "ini", "dockerfile", "hcl", "mermaid")}
    assert every <= looked_at, [str(block) for block in blocks("")]
