"""The deployment files, as far as they can be tried without a container engine."""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
from dagster._cli.utils import get_possibly_temporary_instance_for_cli
from dagster._config import process_config, resolve_to_config_type
from dagster._core.instance.ref import InstanceRef
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.workspace.load import location_origins_from_yaml_paths
from dagster_aws.s3.compute_log_manager import S3ComputeLogManager
from dagster_postgres import DagsterPostgresStorage

from s3lake.config import load as configuration
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import free_ports
from s3lake.land.spark import class_archive, jars
from s3lake_tests.docker.compose import (
    COMPOSE,
    DOCKER,
    OURS,
    ROOT,
    SERVICES,
    find_mounted_files,
    parse_command,
    read_dotenv,
)
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.records.schema.registry import apicurio

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent


ONE_SHOT = ["buckets"]
SERVERS = [name for name in SERVICES if name not in ONE_SHOT]


@pytest.fixture
def environment_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets what one service sees, and nothing of what the developer has set."""

    def enter(service: str) -> None:
        for name in list(os.environ):
            if name.startswith(("AWS_", "S3LAKE_", "DAGSTER_", "KAFKA_")) and not name.endswith("_FILE"):
                monkeypatch.delenv(name)
        for name, value in SERVICES[service]["environment"].items():
            monkeypatch.setenv(name, str(value))

    return enter


def here(service: str, argv: Sequence[str]) -> list[str]:
    """A command of a service, with the files here in place of those in the container."""
    return [find_mounted_files(service).get(argument, argument) for argument in argv]


# compose.yaml


def test_compose_file_meets_the_compose_specification() -> None:
    schema = json.loads((HERE / "compose-spec.json").read_text(encoding="utf-8"))
    errors = jsonschema.Draft202012Validator(schema).iter_errors(COMPOSE)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


def test_every_variable_of_the_compose_file_is_in_the_example_and_vice_versa() -> None:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(read_dotenv(DOCKER / ".env.example"))


def test_secrets_are_nowhere_but_in_the_environment_file() -> None:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    secret = re.compile(r"^\s*(\S*(?:PASSWORD|SECRET|ACCESS_KEY)\S*): (.*)$", re.MULTILINE)
    assert [name for name, value in secret.findall(text) if not value.startswith("${")] == []
    assert ".env" in (DOCKER / ".gitignore").read_text(encoding="utf-8").split()


@pytest.mark.parametrize("name", SERVICES)
def test_service_uses_what_is_declared_and_is_there(name: str) -> None:
    service = SERVICES[name]
    for volume in service.get("volumes", ()):
        assert volume.split(":")[0] in COMPOSE["volumes"], "only named volumes survive `down`"
    for file in find_mounted_files(name).values():
        assert Path(file).is_file()
    for other, needs in service.get("depends_on", {}).items():
        expected = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
        assert needs["condition"] == expected
        assert other in SERVICES
    if name not in OURS:
        assert re.fullmatch(r"[\w-]+(/[\w-]+)?:v?\d[\w.-]*", service["image"]), "an exact tag, and no registry's host"


def test_ports_are_published_to_this_machine_only() -> None:
    assert all(port.startswith("127.0.0.1:") for service in SERVICES.values() for port in service.get("ports", ()))


def test_every_profile_and_service_is_in_the_readme() -> None:
    text = (DOCKER / "README.md").read_text(encoding="utf-8")
    assert [name for name in SERVICES if f"`{name}`" not in text] == []
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", ())}
    assert profiles == set(re.findall(r"`--profile (\w+)`", text))


def test_registry_and_broker_are_the_versions_that_s3lake_is_tested_with() -> None:
    assert SERVICES["registry"]["image"] == f"apicurio/apicurio-registry:{apicurio.VERSION}"
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{jars.KAFKA_VERSION}"


# The commands


OUR_COMMANDS = {f"{name}-command": here(name, SERVICES[name]["command"]) for name in OURS} | {
    f"{name}-healthcheck": SERVICES[name]["healthcheck"]["test"][1:] for name in OURS if name in SERVERS
}


@pytest.mark.parametrize("argv", OUR_COMMANDS.values(), ids=OUR_COMMANDS.keys())
def test_command_is_understood_by_its_program(argv: list[str]) -> None:
    if argv[0] != "python":
        parse_command(argv)
    elif argv[1] == "-c":
        ast.parse(argv[2])
    else:
        ast.parse(Path(argv[1]).read_text(encoding="utf-8"))


def test_code_location_is_served_where_the_workspace_looks_for_it() -> None:
    [origin] = location_origins_from_yaml_paths([str(DOCKER / "workspace.yaml")])
    assert isinstance(origin, GrpcServerCodeLocationOrigin)
    served = parse_command(OUR_COMMANDS["code-command"])
    assert (origin.host, origin.port) == ("code", served["port"])
    assert parse_command(OUR_COMMANDS["code-healthcheck"])["port"] == served["port"]
    assert find_spec(served["module_name"]) is not None


def test_runs_have_their_sessions_where_the_spark_service_serves_them(environment_of: Callable[[str], None]) -> None:
    environment_of("code")
    served = parse_command(OUR_COMMANDS["spark-command"])
    assert configuration.load(DOCKER / "s3lake.yaml").spark.master == f"sc://spark:{served['port']}"
    assert served["host"] == "0.0.0.0", "else no other container reaches it"
    assert parse_command(OUR_COMMANDS["spark-healthcheck"])["check"].endswith(f":{served['port']}")
    assert "spark" in SERVICES["code"]["depends_on"]
    assert SERVICES["spark"]["image"] == SERVICES["code"]["image"], "one installation: workers run the server's code"


def test_buckets_are_made_once_and_found_afterwards(
    s3_server: EmbeddedS3,
    environment_of: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment_of("buckets")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint_url)
    monkeypatch.setattr(sys, "argv", ["create_buckets.py", *SERVICES["buckets"]["command"][2:]])
    for _ in range(2):
        runpy.run_path(str(DOCKER / "create_buckets.py"), run_name="__main__")
        assert capsys.readouterr().out == "bucket lake is there\nbucket logs is there\n"


# The files that are mounted


def test_sinks_of_the_stack_load_in_the_environment_of_the_code_location(environment_of: Callable[[str], None]) -> None:
    environment_of("code")
    config = configuration.load(DOCKER / "s3lake.yaml")
    [sink] = config.sinks
    assert config.kafka.bootstrap_servers == "kafka:9092"
    assert config.s3.endpoint_url == "http://s3:7070"
    assert (sink.topics, sink.bucket, sink.start) == (("events",), "lake", "2026-11-20T00")


@pytest.mark.parametrize("name", ["code", "webserver", "daemon"])
def test_instance_of_the_stack_meets_dagsters_schema_in_the_environment_of_the_service(
    name: str, environment_of: Callable[[str], None]
) -> None:
    environment_of(name)
    instance = InstanceRef.from_dir(str(DOCKER))
    assert instance.storage_data is not None
    schema = resolve_to_config_type(DagsterPostgresStorage.config_type())
    storage = process_config(schema, instance.storage_data.config_dict)  # made for real, it would ask the database
    assert storage.success, storage.errors
    assert storage.value["postgres_db"]["hostname"] in SERVICES
    assert isinstance(instance.compute_log_manager, S3ComputeLogManager)
    assert instance.run_coordinator is not None


# The image


def test_image_has_a_java_that_spark_runs_on_and_no_root() -> None:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    java = re.search(r"openjdk-(\d+)-jre-headless", text)
    assert java is not None
    assert int(java[1]) in jars.JAVA_MAJORS
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1:] == ["s3lake"]


def test_image_is_built_with_every_file_that_s3lake_writes() -> None:
    shipped = runpy.run_path(str(ROOT / "hatch_build.py"))["SHIPPED"]
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    build_stage = (DOCKER / "Dockerfile").read_text(encoding="utf-8").split("\nFROM ")[2]
    copied = re.findall(r"^COPY (.+) (\S+)$", build_stage, re.MULTILINE)
    # Each is copied to the path that it has in the clone, which is where hatch_build.py looks for it.
    assert all(target == "./" or sources == target for sources, target in copied)
    sources = {source for line, _ in copied for source in line.split()}
    assert [path for path in shipped if f"!{path}" not in ignore] == []
    assert [path for path in shipped if not {path, path.partition("/")[0]} & sources] == []


def test_image_has_no_file_with_secrets() -> None:
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    assert "*" in ignore
    assert not {"docker", "docker/.env", ".git", "."} & set(kept)


@pytest.mark.slow("starts a server of sessions; another test writes and uses an archive")
@pytest.mark.usefixtures("jvm")
def test_image_has_the_archive_of_sparks_classes_which_its_user_writes_and_sessions_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    cache = re.search(r"S3LAKE_CACHE=(\S+)", text)
    assert cache is not None
    made, user, written = (
        text.index(part) for part in (f"-o s3lake -g s3lake /opt/dagster /opt/s3lake {cache[1]}", "USER s3lake", ".jsa")
    )
    assert made < user < written, "the user owns the cache, and runs what writes it"
    (command,) = re.findall(r"^RUN (s3lake spark .*\.jsa)$", text, re.MULTILINE)
    (port,) = free_ports(1)
    monkeypatch.setenv("S3LAKE_CACHE", str(tmp_path / "cache"))
    command = command.replace("15002", str(port)).replace("s3lake spark", f"'{sys.executable}' -m s3lake spark")
    run = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    archive = class_archive.find_archive(jars.find_java())
    assert run.stdout.splitlines()[-1] == str(archive)
    (tmp_path / "cache" / "classes").chmod(0o555)
    assert class_archive.java_options(jars.find_java()).startswith(f"-XX:SharedArchiveFile={archive} ")


# The files at the root: `dagster dev` in a clone


def test_state_is_kept_below_this_directory_without_a_dagster_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    with get_possibly_temporary_instance_for_cli("dagster dev") as instance:
        instance.run_storage.set_cursor_values({"seen": "before"})
        assert not instance.telemetry_enabled
        assert instance.run_monitoring_enabled
        assert isinstance(instance.compute_log_manager, LocalComputeLogManager)
    with get_possibly_temporary_instance_for_cli("dagster dev") as instance:
        assert instance.run_storage.get_cursor_values({"seen"}) == {"seen": "before"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [".dagster", "dagster.yaml"]


def test_workspace_and_dg_name_the_same_code_location() -> None:
    [origin] = location_origins_from_yaml_paths([str(ROOT / "workspace.yaml")])
    project = tomllib.loads((ROOT / "dg.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin)
    assert origin.location_name == project["code_location_name"]
    assert origin.loadable_target_origin.module_name == project["code_location_target_module"]
    assert find_spec(project["code_location_target_module"]) is not None
