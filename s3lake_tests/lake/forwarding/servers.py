"""Real servers of destinations, each on a free port, in a directory that is deleted with it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import requests
from py4j.java_gateway import GatewayParameters, JavaGateway

from s3lake.demo.process import free_port, free_ports, spawn
from s3lake.land.spark import jars
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import served

PASSWORD = "hunter2-postgres"


def find_postgres() -> Path | None:
    """Where the newest one's programs are; Debian has them on no PATH."""
    on_path = shutil.which("initdb")
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return Path(on_path).parent if on_path else homes[-1].parent if homes else None


@contextmanager
def serve_postgres() -> Iterator[str]:
    """Yield the connection string of a database on it."""
    directory = find_postgres()
    assert directory is not None, "PostgreSQL is not installed"
    home, [port] = Path(tempfile.mkdtemp(prefix="s3lake-postgres-")), free_ports(1)
    as_user: list[str] = []
    (home / "password").write_text(PASSWORD)
    if os.getuid() == 0:  # which it refuses to run as
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        for path in (home, home / "password"):
            shutil.chown(path, "postgres")
    cluster = ["-D", str(home / "data")]
    make = ["-U", "lake", "--auth=scram-sha-256", f"--pwfile={home / 'password'}", "--no-sync", "--encoding=UTF8"]
    subprocess.run(
        [*as_user, directory / "initdb", *cluster, *make], check=True, capture_output=True, timeout=PATIENCE_S
    )
    listen = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(home), "-c", "fsync=off"]
    conninfo = f"host=127.0.0.1 port={port} user=lake password={PASSWORD} dbname=postgres"
    with spawn([*as_user, directory / "postgres", *cluster, *listen], home / "log", remove=home) as process:
        served(process, lambda: _is_up(conninfo))
        yield conninfo


def _is_up(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def find_ferretdb() -> Path | None:
    """What `go build` made of `ferretdb/`; None if it is not built."""
    named = "s3lake-ferretdb"
    there = shutil.which(named) or shutil.which(named, path=str(Path.home() / "go" / "bin"))
    return Path(there) if there else None


@contextmanager
def serve_mongodb() -> Iterator[str]:
    """Serve FerretDB: MongoDB's protocol and its operations over SQLite, without transactions."""
    binary = find_ferretdb()
    assert binary is not None, "FerretDB is not built"
    home, [port] = Path(tempfile.mkdtemp(prefix="s3lake-ferretdb-")), free_ports(1)
    (home / "data").mkdir()
    command = [binary, f"127.0.0.1:{port}", f"file:{home / 'data'}/"]
    with spawn(command, home / "log", remove=home) as process:
        served(process, lambda: not free_port(port))
        yield f"mongodb://127.0.0.1:{port}"


ELASTICSEARCH = "7.17.29"
_JARS = [
    f"org.elasticsearch:elasticsearch:{ELASTICSEARCH}",
    f"org.elasticsearch.plugin:transport-netty4-client:{ELASTICSEARCH}",
    f"org.elasticsearch.plugin:reindex-client:{ELASTICSEARCH}",
]
_PLUGINS = ("org.elasticsearch.transport.Netty4Plugin", "org.elasticsearch.reindex.ReindexPlugin")


class Elastic:
    """The server, as a test asks it: without ours."""

    def __init__(self, url: str) -> None:
        self.url = url

    def clear(self) -> None:
        """Without an index."""
        self._ask("DELETE", "events,events-hours?ignore_unavailable=true")

    def create(self, index: str, properties: dict[str, Any]) -> None:
        """Create an index as another program would."""
        self._ask("PUT", index, json={"mappings": {"properties": properties}})

    def documents(self, index: str) -> dict[str, Any]:
        """By their ids."""
        self._ask("POST", f"{index}/_refresh?ignore_unavailable=true")
        answer = self._ask("GET", f"{index}/_search?size=1000&ignore_unavailable=true").json()
        return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}

    def _ask(self, method: str, path: str, **options: Any) -> requests.Response:
        response = requests.request(method, f"{self.url}/{path}", timeout=PATIENCE_S, **options)
        response.raise_for_status()
        return response


def resolve_elasticsearch() -> list[Path]:
    """Its jars, downloaded once, and what takes orders for a JVM from Python."""
    jars.find_java()
    return [*jars.resolve("elasticsearch", _JARS), next(jars.pyspark_jars_dir().glob("py4j-*.jar"))]


@contextmanager
def serve_elasticsearch() -> Iterator[Elastic]:
    """Serve one node, of the jars that Maven Central has: it has no distribution, so the node is made by reflection.

    Its security is not among them: it lets everybody in.
    """
    home, [gateway_port, port] = Path(tempfile.mkdtemp(prefix="s3lake-elastic-")), free_ports(2)
    (home / "config").mkdir()
    jvm = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [
        jars.find_java(),
        *jvm,
        "-cp",
        ":".join(map(str, resolve_elasticsearch())),
        "py4j.GatewayServer",
        str(gateway_port),
    ]
    with spawn(command, home / "log", remove=home) as process:
        served(process, lambda: not free_port(gateway_port))
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port))
        try:
            _start_node(gateway, home, port)
            yield Elastic(f"http://127.0.0.1:{port}")
        finally:
            gateway.close()


def _start_node(gateway: JavaGateway, home: Path, port: int) -> None:
    jvm = gateway.jvm
    named = jvm.java.lang.Class.forName
    settings = jvm.org.elasticsearch.common.settings.Settings.builder()
    for name, value in {
        "path.home": str(home),
        "node.name": "one",
        "cluster.name": "s3lake",
        "discovery.type": "single-node",
        "http.host": "127.0.0.1",
        "http.port": str(port),
        "http.type": "netty4",
        "transport.host": "127.0.0.1",
        "transport.port": "0",
        "transport.type": "netty4",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }.items():
        settings = settings.put(name, value)
    preparer = jvm.org.elasticsearch.node.InternalSettingsPreparer
    plugins = jvm.java.util.ArrayList()
    for plugin in _PLUGINS:
        plugins.add(named(plugin))
    arguments = gateway.new_array(jvm.java.lang.Object, 3)
    arguments[0] = preparer.prepareEnvironment(settings.build(), jvm.java.util.HashMap(), None, None)
    arguments[1], arguments[2] = plugins, True
    # The constructor that takes plugins of the class path is protected.
    constructors = named("org.elasticsearch.node.Node").getDeclaredConstructors()
    constructor = next(one for one in constructors if one.getParameterCount() == len(arguments))
    constructor.setAccessible(True)
    constructor.newInstance(arguments).start()
