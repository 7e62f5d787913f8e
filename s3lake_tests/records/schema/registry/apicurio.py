"""A real registry: Apicurio, with Confluent's API under /apis/ccompat/v7, in memory and on 127.0.0.1 only."""

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from s3lake.demo.process import GuardedProcess, free_ports, spawn
from s3lake_tests.kit import oracles
from s3lake_tests.kit.cost import PATIENCE_S

VERSION = "3.3.3"
_JAVA = 21


class Apicurio:
    """A registry that runs, and what a producer asks of it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def register(self, subject: str, schema: str, references: Sequence[dict[str, Any]] = (), kind: str = "AVRO") -> int:
        """A new version of a subject; its schema's id."""
        body = {"schema": schema, "schemaType": kind, "references": list(references)}
        with requests.post(f"{self.url}/subjects/{subject}/versions", json=body, timeout=PATIENCE_S) as response:
            response.raise_for_status()
            return int(response.json()["id"])


@contextmanager
def running(environment: Mapping[str, str] | None = None) -> Iterator[Apicurio]:
    """A registry that ends with the block, or with this process; it is in memory unless `environment` sets a place."""
    java, home = find_java(), _installed()
    port, management = free_ports(2)
    scratch = Path(tempfile.mkdtemp(prefix="s3lake-apicurio-"))
    settings = {"http.host": "127.0.0.1", "http.port": port}
    settings |= {"management.host": "127.0.0.1", "management.port": management}
    options = [f"-Dquarkus.{name}={value}" for name, value in settings.items()]
    jvm = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [java, *jvm, *options, "-jar", home / "quarkus-run.jar"]
    with spawn(command, scratch / "apicurio.log", {**os.environ, **(environment or {})}, remove=scratch) as process:
        found = Apicurio(f"http://127.0.0.1:{port}/apis/ccompat/v7")
        _wait(process, found.url)
        yield found


def _wait(process: GuardedProcess, url: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while process.running and time.monotonic() < deadline:
        try:
            with requests.get(f"{url}/subjects", timeout=5) as response:
                if response.ok:
                    return
        except requests.exceptions.ConnectionError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"Apicurio Registry did not start. The end of its log:\n{process.log()}")


def find_java() -> Path:
    """Find a Java that is new enough: Spark's may be 17. Skips the test if there is none."""
    homes = [Path(os.environ["JAVA_HOME"])] if "JAVA_HOME" in os.environ else []
    homes += sorted(Path("/usr/lib/jvm").glob("*")) if Path("/usr/lib/jvm").is_dir() else []
    on_path = shutil.which("java")
    for java in [*(home / "bin" / "java" for home in homes), *([Path(on_path)] if on_path else [])]:
        if java.exists():
            message = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
            ).stderr
            version = re.search(r'version "(\d+)', message)
            if version and int(version[1]) >= _JAVA:
                return java
    pytest.skip(
        f"Java {_JAVA} or later, for Apicurio Registry, is missing: install it in /usr/lib/jvm, or set JAVA_HOME"
    )


def _installed() -> Path:
    """Its directory in the cache."""
    archive = oracles.artifact("io.apicurio", "apicurio-registry-app", VERSION, "all", suffix="tar.gz", alone=True)
    return oracles.kept(f"apicurio-registry-{VERSION}", archive, change=_unpacked)


def _unpacked(files: Path) -> Path:
    with tarfile.open(files / f"apicurio-registry-app-{VERSION}-all.tar.gz") as archive:
        archive.extractall(files / "app", filter="data")
    return files / "app"


@contextmanager
def run_serializers() -> Iterator[Any]:
    """Yield the classes of a JVM with Apicurio's own serializers.

    They are of the newest line of which all that they need is on Maven Central; it speaks to registries of line 3 too.
    """
    version = "2.6.13.Final"
    parts = [f"apicurio-registry-serdes-{name}-serde" for name in ("avro", "jsonschema", "protobuf")]
    jars = [oracles.artifact("io.apicurio", part, version) for part in parts]
    kafka = oracles.artifact("org.apache.kafka", "kafka-clients", "4.1.1")
    with oracles.run_jvm(oracles.kept(f"apicurio-serdes-{version}", *jars, kafka).glob("*.jar")) as classes:
        yield classes


def serializer_settings(apicurio: Apicurio) -> dict[str, Any]:
    """As documented for readers that are Confluent's: ids of four bytes, before the value."""
    return {
        "apicurio.registry.url": apicurio.url.replace("ccompat/v7", "registry/v2"),
        "apicurio.registry.auto-register": True,
        "apicurio.registry.as-confluent": True,
        "apicurio.registry.id-handler": "io.apicurio.registry.serde.Legacy4ByteIdHandler",
        "apicurio.registry.use-id": "contentId",
    }
