"""A Spark Connect server as people start it, and programs that are its clients."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import MARK, kill_all, marked

ROOT = Path(__file__).parents[3]


class SparkServer:
    """`s3lake spark` in a process of its own, which has a directory for its temporary files."""

    def __init__(self, home: Path, *options: str, master: str = "local[2]", port: int = 0, code: Path = ROOT) -> None:
        self.mark, self.home, self.log = str(uuid.uuid4()), home, home.with_suffix(".log")
        home.mkdir(exist_ok=True)
        environment = _environment({MARK: self.mark, "TMPDIR": str(home), "SPARK_LOCAL_DIRS": str(home)}, code)
        environment["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={home} -XX:-UsePerfData"
        command = [sys.executable, "-m", "s3lake", "spark", "--json"]
        command += ["--master", master, "--port", str(port), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=log, start_new_session=True, cwd=code
            )

    def __enter__(self) -> "SparkServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ready(self) -> dict[str, Any]:
        """What it prints of itself when it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text(errors="replace")[-4000:]
        return json.loads(line)  # type: ignore[no-any-return]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """As people and containers end it."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """The whole tree, at once."""
        kill_all(self.mark)
        self.process.communicate()

    def left(self) -> list[str]:
        """Processes and files that its end has left behind."""
        return [*map(str, marked(self.mark)), *map(str, self.home.iterdir())]


def client(program: str, address: str, **variables: str) -> str:
    """What a fresh process prints that runs a program with `session`, at an address."""
    process = opened(program, address, **variables)
    out, errors = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == 0, errors
    return out


def opened(program: str, address: str, **variables: str) -> "subprocess.Popen[str]":
    """The same, under way."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _BEGIN + program],
        env=_environment({"ADDRESS": address, **variables}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


_BEGIN = """
import json, os
from s3lake.land import spark
from s3lake.config.model import Spark

def session(**conf):
    return spark.get_session(Spark(master=os.environ["ADDRESS"], conf=conf))
"""


def _environment(more: Mapping[str, str], code: Path = ROOT) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}
