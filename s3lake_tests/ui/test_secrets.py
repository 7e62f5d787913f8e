"""What Dagster's web server answers, and the command lines of all that it starts, have no secret that is planted."""

import functools
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from s3lake.demo.process import free_ports, spawn
from s3lake_tests import planted
from s3lake_tests.kit.http import serve
from s3lake_tests.kit.processes import until
from s3lake_tests.planted import PLACES, Words

if TYPE_CHECKING:
    from graphql import GraphQLNamedType, GraphQLSchema

pytestmark = [
    pytest.mark.usefixtures("jvm"),
    pytest.mark.slow("starts Dagster's web server and a run"),
    pytest.mark.timeout(600),
]

LOCATION = 'repositoryName: "__repository__", repositoryLocationName: "s3lake.definitions"'
PIPELINE = f'pipelineName: "land_events", {LOCATION}'
ROOTS = {
    f"allTopLevelResourceDetailsOrError(repositorySelector: {{{LOCATION}}})": 4,
    f"resourcesOrError(pipelineSelector: {{{PIPELINE}}})": 3,
    f"runConfigSchemaOrError(selector: {{{PIPELINE}}})": 3,
    f"pipelineSnapshotOrError(activePipelineSelector: {{{PIPELINE}}})": 3,
    f"sensorsOrError(repositorySelector: {{{LOCATION}}})": 3,
    "workspaceOrError": 4,
    "assetNodes": 2,
    'runOrError(runId: "RUN")': 2,
    'logsForRun(runId: "RUN")': 4,
}
"""What is asked, and how deep into what it leads to."""
LAUNCH = f"""
mutation {{
  launchPipelineExecution(executionParams: {{
    selector: {{{PIPELINE}}}, mode: "default",
    executionMetadata: {{tags: [{{key: "dagster/partition", value: "2026-01-05T00"}}]}}
  }}) {{ __typename ... on LaunchRunSuccess {{ run {{ runId }} }} ... on PythonError {{ message }} }}
}}"""


@functools.cache
def schema() -> "GraphQLSchema":
    from dagster_graphql.schema import create_schema  # half a second, in all that collect

    return create_schema().graphql_schema


@dataclass
class Server:
    """Dagster's web server with its daemon, and all command lines that its processes ever had."""

    url: str
    process: psutil.Process
    commands: set[str] = field(default_factory=set)

    def ask(self, query: str) -> str:
        """The whole answer, as it came."""
        body = json.dumps({"query": query}).encode()
        question = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(question, timeout=120) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:  # where one resolver fails
            return error.read().decode()

    def answers(self) -> bool:
        self.look()
        try:
            return "s3lake.definitions" in self.ask(
                "{ workspaceOrError { ... on Workspace { id locationEntries { id } } } }"
            )
        except OSError:
            return False

    def ended(self, run: str) -> bool:
        self.look()
        return '"FAILURE"' in self.ask(f'{{ runOrError(runId: "{run}") {{ ... on Run {{ status }} }} }}')

    def look(self) -> None:
        for one in self.process.children(recursive=True):
            try:
                self.commands.add("\0".join(one.cmdline()))
            except psutil.Error:  # it ended just now
                continue


@pytest.fixture
def words() -> Iterator[Words]:
    with serve(planted.repeat_request) as url:
        yield Words(url)


@pytest.fixture
def server(words: Words, tmp_path: Path) -> Iterator[Server]:
    # librdkafka knows no property of that name, and the run is to get as far as asking Kafka.
    text = PLACES["native.yaml"].replace("https.proxy", "sasl.oauthbearer.client.secret")
    (tmp_path / "s3lake.yaml").write_text(words.plant(text))
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (port,) = free_ports(1)
    environment = {
        **os.environ,
        **{name: words.plant(value) for name, value in planted.ENVIRONMENT.items()},
        "DAGSTER_HOME": str(tmp_path),
        "S3LAKE_CONFIG": str(tmp_path / "s3lake.yaml"),
        "S3LAKE_SINKS_EVENTS_ERRORS_MAX_RETRIES": "0",
    }
    command = [sys.executable, "-m", "dagster", "dev", "-m", "s3lake.definitions", "-h", "127.0.0.1", "-p", str(port)]
    with spawn(command, tmp_path / "dagster.log", environment) as process:
        found = Server(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
        until(240, found.answers)
        yield found


class Question:
    """One root of the schema, asked for all that it leads to; what no resolver answers is left out."""

    def __init__(self, root: str, depth: int) -> None:
        import graphql

        queries = schema().query_type
        assert queries is not None
        self._root, self._depth = root, depth
        self._leads = graphql.get_named_type(queries.fields[root.partition("(")[0]].type)
        self._unanswered: set[str] = set()

    def answered(self, server: Server) -> str:
        for _ in range(20):
            answer = server.ask(f"{{ {self._root} {{ {self._selection(self._leads, self._depth)} }} }}")
            paths = [error.get("path", ()) for error in json.loads(answer).get("errors", ())]
            if not paths:
                return answer
            self._unanswered |= {[name for name in path if isinstance(name, str)][-1] for path in paths}
        raise AssertionError(answer[:2000])

    def _selection(self, of: "GraphQLNamedType", depth: int, path: tuple[str, ...] = ()) -> str:
        """All fields of a type that need no argument, so many levels deep; what led here is not asked for again."""
        import graphql

        if isinstance(of, graphql.GraphQLUnionType | graphql.GraphQLInterfaceType):
            types = [one for one in schema().get_possible_types(of) if one.name not in path]
            return " ".join(
                ["__typename", *(f"... on {one} {{ {self._selection(one, depth, path)} }}" for one in types)]
            )
        parts = ["__typename"]
        for name, asked in of.fields.items() if isinstance(of, graphql.GraphQLObjectType) else ():
            leads, own = graphql.get_named_type(asked.type), f"{of.name}_{name}"
            if own in self._unanswered or any(graphql.is_required_argument(one) for one in asked.args.values()):
                continue
            if graphql.is_leaf_type(leads):
                parts.append(f"{own}: {name}")
            elif depth > 1 and leads.name not in path:
                parts.append(f"{own}: {name} {{ {self._selection(leads, depth - 1, (*path, of.name))} }}")
        return " ".join(parts)


def test_no_answer_of_the_web_server_and_no_command_line_has_one(words: Words, server: Server) -> None:
    launched = json.loads(server.ask(LAUNCH))["data"]["launchPipelineExecution"]
    run = launched["run"]["runId"]
    until(180, lambda: server.ended(run))
    shown = {root: Question(root.replace("RUN", run), depth).answered(server) for root, depth in ROOTS.items()}
    assert "Kafka at 127.0.0.1:1 did not tell" in shown['logsForRun(runId: "RUN")']
    assert "s3lake_s3" in shown[f"resourcesOrError(pipelineSelector: {{{PIPELINE}}})"]
    assert all(len(answer) > 100 for answer in shown.values())
    assert any("dagster._daemon" in command for command in server.commands)
    assert any("execute_run" in command or "multiprocessing" in command for command in server.commands)
    assert words.seen("".join([*shown.values(), *server.commands])) == []
