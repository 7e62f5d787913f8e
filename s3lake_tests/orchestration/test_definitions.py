"""The code location: loads fast, with nothing running, and reports what is missing."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import dagster as dg
import pytest

import s3lake
from s3lake import definitions
from s3lake.errors import ConfigurationError
from s3lake.orchestration import sink_topics
from s3lake_tests.kit.cost import PATIENCE_S, dagster_import_s, ratio_of_least

HEAVY = {"pyspark", "pyarrow", "pandas", "numpy", "boto3", "botocore", "dagster_aws", "dagster_pyspark", "moto"}
NOBODY = """\
kafka: {bootstrap_servers: "127.0.0.1:1"}
s3: {endpoint_url: "http://127.0.0.1:1"}
examples: true
sinks:
  - {name: events, topics: [orders], bucket: lake, start: 2026-01-05T00, format: {type: parquet}}
  - {name: others, topics_regex: "shop.*", bucket: lake, prefix: others, start: 2026-01-05T00}
"""


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose Kafka and S3 are down."""
    path = tmp_path / "elsewhere.yaml"
    path.write_text(NOBODY)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("S3LAKE_CONFIG", str(path))
    return path


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that are down are given up at once."""
    monkeypatch.setattr(sink_topics, "TIMEOUT_S", 0.1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("named", ["the file", "its directory"])
def test_a_process_builds_them_once_until_the_file_is_changed(
    named: str, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster asks for them twice in the process of each run."""
    monkeypatch.setenv("S3LAKE_CONFIG", str(config_file if named == "the file" else config_file.parent))
    first = definitions.defs()
    assert definitions.defs() is first
    config_file.write_text(NOBODY.replace("topics: [orders]", "topics: [clicks]"))
    assert definitions.defs().get_repository_def().has_sensor_def("kafka_clicks")


@pytest.mark.long
def test_importing_and_loading_it_imports_nothing_heavy(config_file: Path) -> None:
    """Every run worker imports the code location again."""
    script = "from s3lake.definitions import defs; defs().get_repository_def().get_all_jobs()"
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script],
        env={**os.environ, "S3LAKE_CONFIG": str(config_file), "DAGSTER_HOME": str(config_file.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    lines = [line.rsplit("|", 1)[1].strip() for line in run.stderr.splitlines() if line.startswith("import time:")]
    packages = {line.split(".")[0] for line in lines}
    assert {"s3lake", "dagster", "confluent_kafka"} <= packages
    assert packages & HEAVY == set()


@pytest.mark.usefixtures("impatient")
def test_the_file_in_the_working_directory_is_the_default(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("S3LAKE_CONFIG")
    config_file.rename(tmp_path / "s3lake.yaml")
    monkeypatch.chdir(tmp_path)
    assert definitions.defs().get_repository_def().has_job("land_events")


def test_the_error_has_a_remedy_if_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigurationError, match=r"s3lake\.yaml: no such file or directory; correct the path, or set S3LAKE_CONFIG"
    ):
        definitions.defs()


@pytest.mark.parametrize(
    ("name", "place", "text"),
    [
        ("native.yaml", ":5:", NOBODY.replace("bucket: lake", "buckte: lake", 1)),
        (
            "connector.properties",
            ":",
            "connector.class=io.confluent.connect.s3.S3SinkConnector\nname=a\ntopics=orders\ns3.bucket.name=l\n"
            "flush.size=10\nformat.class=io.confluent.connect.s3.format.json.JsonFormat\nbootstrap.servers=a:1\n"
            "s3lake.start=2026-01-05T00\n",
        ),
    ],
)
def test_a_wrong_configuration_is_reported_without_a_trace(
    name: str, place: str, text: str, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster shows an error with all that it came from."""
    path = config_file.with_name(name)
    path.write_text(text)
    monkeypatch.setenv("S3LAKE_CONFIG", str(path))
    with pytest.raises(ConfigurationError) as wrong:
        definitions.defs()
    shown = "".join(traceback.format_exception(wrong.value))
    assert f"{name}{place}" in shown
    assert "pydantic" not in shown
    assert "During handling" not in shown


@pytest.mark.parametrize(("variable", "status"), [("running", "RUNNING"), ("", "STOPPED")])
@pytest.mark.usefixtures("config_file", "impatient")
def test_sensors_and_the_nightly_clean_are_on_when_the_environment_sets_it(
    variable: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3LAKE_SENSORS", variable)
    built = definitions.defs().get_repository_def()
    assert built.get_sensor_def("kafka_orders").default_status.name == status
    assert built.get_schedule_def("s3lake_daily_clean").default_status.name == status
    assert built.get_schedule_def("hourly_events").default_status.name == "STOPPED"
    assert built.get_job("__ASSET_JOB").executor_def is dg.in_process_executor  # of backfills; the location is ours


MANY = [f"t{number:03}" for number in range(200)]
NAMED = f"""\
kafka: {{bootstrap_servers: "127.0.0.1:1"}}
sinks: [{{name: events, topics: [{", ".join(MANY)}], bucket: lake, start: 2026-01-05T00}}]
"""
PROGRAM = """\
import time
from s3lake.definitions import defs
assert len(defs().get_repository_def().asset_graph.get_all_asset_keys()) == 600
print(time.process_time())
"""


@pytest.mark.long
def test_two_hundred_topics_load_in_five_times_the_cpu_of_importing_dagster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the start of the process; every run's worker does it too."""
    (tmp_path / "s3lake.yaml").write_text(NAMED)

    def cpu_s() -> float:
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(s3lake.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert ran.returncode == 0, ran.stderr
        return float(ran.stdout)

    ratio = ratio_of_least(cpu_s, dagster_import_s, enough=5, tries=5)
    with capsys.disabled():
        print(f"\n200 topics: {ratio:.2f} times the CPU of importing Dagster")
    assert ratio <= 5
