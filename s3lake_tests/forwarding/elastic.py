"""A real Elasticsearch: one node on 127.0.0.1, of the jars that Maven Central has, made by reflection for want of a
distribution there. Its security, which is not among them, lets everybody in.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from py4j.java_gateway import GatewayParameters, JavaGateway

from s3lake.demo.process import free_port, free_ports, spawn
from s3lake.spark import jars
from s3lake_tests.processes import served

VERSION = "7.17.29"
_UP_S = 240.0
_JARS = [
    f"org.elasticsearch:elasticsearch:{VERSION}",
    f"org.elasticsearch.plugin:transport-netty4-client:{VERSION}",
    f"org.elasticsearch.plugin:reindex-client:{VERSION}",
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
        """An index that somebody else has made."""
        self._ask("PUT", index, json={"mappings": {"properties": properties}})

    def documents(self, index: str) -> dict[str, Any]:
        """By their ids."""
        self._ask("POST", f"{index}/_refresh?ignore_unavailable=true")
        answer = self._ask("GET", f"{index}/_search?size=1000&ignore_unavailable=true").json()
        return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}

    def _ask(self, method: str, path: str, **options: Any) -> requests.Response:
        response = requests.request(method, f"{self.url}/{path}", timeout=60, **options)
        response.raise_for_status()
        return response


def class_path() -> list[Path]:
    """Its jars, downloaded once, and what takes orders for a JVM from Python."""
    jars.find_java()
    return [*jars.resolve("elasticsearch", _JARS), next(jars.pyspark_jars_dir().glob("py4j-*.jar"))]


@contextmanager
def running() -> Iterator[Elastic]:
    """A server on a free port, in a directory that goes with it."""
    home, [gateway_port, port] = Path(tempfile.mkdtemp(prefix="s3lake-elastic-")), free_ports(2)
    (home / "config").mkdir()
    jvm = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [jars.find_java(), *jvm, "-cp", ":".join(map(str, class_path())), "py4j.GatewayServer", str(gateway_port)]
    with spawn(command, home / "log", remove=home) as process:
        served(process, _UP_S, lambda: not free_port(gateway_port))
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port))
        try:
            _start(gateway, home, port)
            yield Elastic(f"http://127.0.0.1:{port}")
        finally:
            gateway.close()


def _start(gateway: JavaGateway, home: Path, port: int) -> None:
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
