"""The demo that is served: a run that the UI is asked for lands through the demo's Spark Connect server."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import MARK, marked, until

pytestmark = [pytest.mark.timeout(600)]

LAUNCH = """
mutation($parameters: ExecutionParams!) {
  launchPipelineExecution(executionParams: $parameters) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}"""
LANDED = """
query($run: ID!, $asset: AssetKeyInput!, $hours: [String!]) {
  runOrError(runId: $run) { ... on Run { status } }
  assetOrError(assetKey: $asset) {
    ... on Asset { assetMaterializations(partitions: $hours, limit: 1) { runId } }
  }
}"""
READY = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"


class Served:
    """`s3lake demo --serve`, and what its UI answers."""

    def __init__(self, home: Path) -> None:
        self.mark = str(uuid.uuid4())
        command = [Path(sys.executable).parent / "s3lake", "demo", "--serve", "--json", "--records", "2000"]
        environment = {**os.environ, MARK: self.mark, "TMPDIR": str(home)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=home)
        assert self.process.stdout is not None
        self.hours: list[str] = []
        for line in self.process.stdout:
            row = json.loads(line)
            if "hour" in row:
                self.hours.append(row["hour"])
            if "ui" in row:
                self.where = row
                break
        self._url = f"{self.where['ui'].split()[0]}/graphql"
        until(self._answers)

    def ask(self, query: str, **variables: Any) -> Any:
        """What GraphQL answers."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def launch(self, hour: str) -> str:
        """Ask for a run, by its id."""
        parameters = {
            "selector": {
                "repositoryLocationName": "s3lake",
                "repositoryName": "__repository__",
                "pipelineName": "land_events",
            },
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": hour}]},
        }
        launched = self.ask(LAUNCH, parameters=parameters)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def landed(self, run: str, hour: str) -> bool:
        """Whether a run has materialised an hour and is over."""
        answer = self.ask(LANDED, run=run, asset={"path": ["s3", "events", "orders"]}, hours=[hour])
        status, materialised = answer["runOrError"]["status"], answer["assetOrError"]["assetMaterializations"]
        assert status not in ("FAILURE", "CANCELED"), [one.read_text()[-4000:] for one in self.home.glob("*.log")]
        return status == "SUCCESS" and materialised == [{"runId": run}]

    @property
    def home(self) -> Path:
        return Path(self.where["config"]).parent

    def jvms(self) -> list[psutil.Process]:
        """Those with a Spark."""
        found = []
        for process in marked(self.mark):
            with contextlib.suppress(psutil.Error):  # it ended just now
                if "SparkSubmit" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def _answers(self) -> bool:
        try:
            return bool(self.ask(READY)["repositoriesOrError"]["nodes"])
        except (OSError, KeyError):
            return False


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    demo = Served(tmp_path)
    try:
        yield demo
    finally:
        demo.process.kill()
        demo.process.communicate()
        psutil.wait_procs(marked(demo.mark), timeout=PATIENCE_S)


def test_a_served_demo_lands_through_one_spark_that_it_starts_again_and_ends(served: Served) -> None:
    (spark,) = served.jvms()
    run = served.launch(served.hours[-1])
    until(lambda: served.landed(run, served.hours[-1]))
    assert served.jvms() == [spark], "the run started none of its own"

    spark.kill()
    spark.wait(PATIENCE_S)
    until(lambda: served.jvms() not in ([], [spark]))
    run = served.launch(served.hours[-1])
    until(lambda: served.landed(run, served.hours[-1]))
    (again,) = served.jvms()
    assert again != spark

    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(PATIENCE_S) == 0
    assert not served.home.exists()
    assert marked(served.mark) == []
