"""The programs of others that decide what is right: classes of Java and Kafka Connect in a JVM, and what Maven has."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from s3lake.land.spark import jars
from s3lake_tests.kit.cost import PATIENCE_S


@contextmanager
def run_jvm(classpath: Iterable[Path], options: Sequence[str] = ()) -> Iterator[Any]:
    """What py4j, which pyspark ships, calls `jvm`: packages and classes as attributes."""
    from py4j import java_gateway, protocol
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    py4j = next(jars.pyspark_jars_dir().glob("py4j-*.jar"))
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, classpath)),
        javaopts=["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options],
        java_path=str(jars.find_java()),
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        # PySpark replaces this in a process that has a session of its own, and asks Spark's JVM what was thrown in any.
        with mock.patch.object(java_gateway, "get_return_value", protocol.get_return_value):
            yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=PATIENCE_S)


# Maven Central


def artifact(group: str, name: str, version: str, *classifiers: str, suffix: str = "jar", alone: bool = False) -> str:
    """A dependency in Ivy's words: its files by classifier, `""` for the one without, and all that it depends on."""
    files = "".join(
        f'<artifact name="{name}" type="{suffix}" ext="{suffix}" {classifier and f"e:classifier={classifier!r}"}/>'
        for classifier in classifiers
    )
    own = f'org="{group}" name="{name}" rev="{version}"'
    more = 'conf="default->master" transitive="false"' if alone else 'conf="default->default"'
    return f"<dependency {own} {more}>{files}</dependency>"


def kept(name: str, *artifacts: str, change: Callable[[Path], Path] = Path) -> Path:
    """A directory of the cache with these artifacts, or with what `change` makes of them, downloaded once."""
    target = jars.cache_dir() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        here = Path(scratch)
        _retrieve(artifacts, here)
        made = change(here / "files")
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was faster
                raise
    return target


def _retrieve(artifacts: tuple[str, ...], here: Path) -> None:
    (here / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">'
        '<info organisation="s3lake" module="tests"/><configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(artifacts)}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    ivy = next(jars.pyspark_jars_dir().glob("ivy-*.jar"))
    command = [str(jars.find_java()), "-jar", str(ivy), "-ivy", str(here / "ivy.xml"), "-confs", "default"]
    command += ["-cache", str(here / "cache")]
    command += ["-retrieve", f"{here}/files/[artifact]-[revision](-[classifier]).[ext]"]
    if settings := os.environ.get("S3LAKE_IVY_SETTINGS"):
        command += ["-settings", settings]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=900, check=True)


# Kafka Connect


VERSION = "3.9.0"
LOGICAL = "org.apache.kafka.connect.data."
DECIMAL = {"type": "bytes", "name": f"{LOGICAL}Decimal", "parameters": {"scale": "2"}}
LEAVES: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "int8"}, st.integers(-(2**7), 2**7 - 1)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "bytes"}, st.sampled_from(["", "AAE=", "/w=="])),
    ({"type": "int32", "name": f"{LOGICAL}Date"}, st.integers(-9, 20_000)),
    ({"type": "int32", "name": f"{LOGICAL}Time"}, st.integers(0, 86_399_999)),
    ({"type": "int64", "name": f"{LOGICAL}Timestamp"}, st.integers(-9, 2_000_000_000_000)),
]
"""Schemas of values without parts, and values of each."""


@contextmanager
def run_connect() -> Iterator[Any]:
    """Its transforms and its JSON converter, as py4j has them."""
    parts = ("connect-transforms", "connect-json")
    with run_jvm(jars.resolve("connect", [f"org.apache.kafka:{part}:{VERSION}" for part in parts])) as java:
        yield java


def json_converter(java: Any, *, schemas: bool, **options: str) -> Any:
    """A converter of values; options have dots for underscores."""
    converter = java.org.apache.kafka.connect.json.JsonConverter()
    more = {name.replace("_", "."): option for name, option in options.items()}
    converter.configure({"schemas.enable": str(schemas).lower(), "converter.type": "value", **more})
    return converter


def read_json(text: Any) -> Any:
    """Read JSON; equal numbers are equal values, however they are written."""
    return None if text is None else normalize_numbers(json.loads(bytes(text), parse_float=Decimal))


def normalize_numbers(value: Any) -> Any:
    """Return a decoded value in which equal numbers are equal, and equal to nothing else: 0 is not false."""
    match value:
        case dict():
            return {name: normalize_numbers(inner) for name, inner in value.items()}
        case list():
            return list(map(normalize_numbers, value))
        case int() | Decimal() if not isinstance(value, bool):
            return {"number": str(Decimal(value).normalize() + 0)}
    return value
