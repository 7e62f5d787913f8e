"""`s3lake demo`: what it prints, on a terminal and elsewhere, and that it leaves no process."""

import contextlib
import inspect
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from s3lake.cli import program, services
from s3lake.errors import ConfigurationError
from s3lake.land.spark import shared
from s3lake_tests.config.examples import CONFIGURATIONS
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import MARK, marked, until


@pytest.mark.usefixtures("jvm")
def test_demo_lands_and_verifies_everything_and_leaves_no_process() -> None:
    mark = str(uuid.uuid4())
    done = subprocess.run(
        [Path(sys.executable).parent / "s3lake", "demo", "--records", "2000"],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
        env={**os.environ, MARK: mark},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    produced, compared = "produced 2,000 committed records, ", "compared 2,000 records of Kafka: "
    lines = done.stdout.splitlines()
    assert lines[0] == "starting Kafka and S3 on this machine"
    assert [line for line in lines if line.startswith(produced)]
    begun = next(at for at, line in enumerate(lines) if line.startswith("backfilling "))
    assert "planned" in lines[begun + 1], "a line is printed before all of it is done"
    (total,) = [line for line in lines if line.startswith(compared)]
    figures = re.fullmatch(rf"{compared}([\d,]+) landed, (\d+) dead letters?, in (\d+) data files?.*", total)
    assert figures, total
    assert total.endswith("; not landed 0, missing 0, duplicated 0")
    assert int(figures[1].replace(",", "")) + int(figures[2]) == 2000
    assert lines[-2].startswith("next: s3lake demo --serve")
    sums = [
        re.fullmatch(r"\S+ \w+ \S+: ([\d,]+) offsets? = ([^;]+); ([\d,]+) data files?.*", line)
        for line in lines
        if re.search(" offsets? = ", line)
    ]
    assert len(sums) >= 8
    for found in sums:
        assert found
        parts = [int(part.split()[0].replace(",", "")) for part in found[2].split(" + ")]
        assert sum(parts) == int(found[1].replace(",", ""))
    assert sum(int(found[3]) for found in sums if found) == int(figures[3])
    _, alive = psutil.wait_procs(marked(mark), timeout=PATIENCE_S)
    assert alive == []


@pytest.mark.usefixtures("jvm")
def test_demo_serves_kafka_and_s3_alone_until_it_is_interrupted(tmp_path: Path) -> None:
    mark = str(uuid.uuid4())
    command = [Path(sys.executable).parent / "s3lake", "demo", "--services", "--records", "500", "--json"]
    environment = {**os.environ, MARK: mark, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as demo:
        assert demo.stdout is not None
        addresses = json.loads(demo.stdout.readline())
        assert list(addresses) == ["kafka", "s3", "s3 credentials", "config"]
        topics = AdminClient({"bootstrap.servers": addresses["kafka"]}).list_topics(timeout=PATIENCE_S).topics
        assert {"orders", "clicks"} <= topics.keys()
        assert not [one for one in marked(mark) if "SparkSubmit" in " ".join(one.cmdline())]
        demo.terminate()
        _, errors = demo.communicate(timeout=PATIENCE_S)
    assert (demo.returncode, errors) == (0, "")
    assert (marked(mark), [*tmp_path.iterdir()]) == ([], [])


@pytest.mark.parametrize("option", ["--serve", "--table"])
def test_demo_of_services_alone_lands_nothing(option: str) -> None:
    with pytest.raises(ConfigurationError, match="--services lands nothing: leave out --serve and --table"):
        program()(["demo", "--services", option], standalone_mode=False)


@pytest.mark.long
def test_demo_that_is_terminated_leaves_no_directory(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "s3lake", "demo", "--records", "1000000000"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    until(lambda: [*tmp_path.glob("s3lake-demo-*/s3lake.yaml")] != [])
    demo.terminate()
    _, errors = demo.communicate(timeout=PATIENCE_S)
    assert (demo.returncode, "Traceback" in errors) == (130, False), errors
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("the demo with a configuration; the demo itself is always run")
@pytest.mark.parametrize("name", ["lenses: rolling window", "iggy: readme"])
def test_demo_lands_and_verifies_by_a_configuration_of_the_documents(name: str, tmp_path: Path) -> None:
    config = tmp_path / ("sink.toml" if name.startswith("iggy") else "sink.properties")
    config.write_text(CONFIGURATIONS[name])
    command = [Path(sys.executable).parent / "s3lake", "demo", "--config", config, "--records", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    [total] = [line for line in done.stdout.splitlines() if line.startswith("compared ")]
    figures = re.search(r": ([\d,]+) landed, (\d+) dead letters?.*; not landed 0, missing 0, duplicated 0$", total)
    assert figures, total
    assert int(figures[2]) <= 4, "malformed ones only"


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("the demo on a terminal; the demo itself is always run")
def test_demo_on_a_terminal_shows_where_everything_is_and_overwrites_none_of_it(tmp_path: Path) -> None:
    mark, seen = str(uuid.uuid4()), b""
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).parent / "s3lake", "demo", "--records", "500", "--serve"]
    environment = {**os.environ, MARK: mark, "TERM": "xterm", "COLUMNS": "400"}
    demo = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path)
    os.close(theirs)
    deadline = time.monotonic() + 3 * PATIENCE_S
    while b"Ctrl-C ends" not in seen:
        assert time.monotonic() < deadline, f"a timeout: it does not serve yet:\n{seen.decode()}"
        if select.select([ours], [], [], 1)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # its end of the terminal is closed
                pytest.fail(f"it has ended before it served:\n{seen.decode()}")
    demo.send_signal(signal.SIGINT)
    code = None
    with contextlib.suppress(OSError):  # the terminal is closed with its last process
        while code is None:
            assert time.monotonic() < deadline, f"a timeout: it has not ended:\n{seen.decode()}"
            code = demo.poll()
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 65536)
    assert demo.wait(PATIENCE_S) == 0
    os.close(ours)
    text = seen.decode()
    first = re.search(r"Dagster's UI will be at (http://127\.0\.0\.1:\d+)", text)
    assert first, "it is printed before anything else is done"
    assert f"ui: {first[1]} " in text
    shown = text[text.index("ui: http://127.0.0.1:") :]
    # Nothing goes back over a line, or erases one, from here on.
    assert not re.search(r"\x1b\[\d*[AFJK]", shown), shown[-500:]
    for line in (
        "kafka: 127.0.0.1:",
        "s3: http://127.0.0.1:",
        "s3 credentials: s3lake-demo ",
        "duckdb -c ",
        "Ctrl-C ends",
    ):
        assert line in shown
    _, alive = psutil.wait_procs(marked(mark), timeout=PATIENCE_S)
    assert alive == []


def test_port_of_a_spark_server_is_the_one_that_addresses_without_a_port_have() -> None:
    assert inspect.signature(services.run_spark).parameters["port"].default == shared.PORT
