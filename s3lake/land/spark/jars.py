"""Maven coordinates as local jar files, by the Ivy that pyspark ships.

A set of coordinates is resolved once into a directory of the user's cache; from then on it costs a directory listing
and no JVM.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from xml.sax.saxutils import quoteattr

import platformdirs

from s3lake.errors import ConfigurationError, TransientError

KAFKA_VERSION = "4.1.1"
JAVA_MAJORS = (17, 21)

_RESOLVE_TIMEOUT_S = 900.0
_TAIL_CHARS = 3000
_GET_JAVA = """\
How to get Java 17:
  Debian, Ubuntu  sudo apt-get install openjdk-17-jre-headless
  macOS           brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home"
  anywhere        pip install install-jdk && export JAVA_HOME="$(python -c "import jdk; print(jdk.install('17'))")"
If it is installed already, point JAVA_HOME at it."""  # noqa: E501 (a line to be copied stays one line)


def cache_dir() -> Path:
    """The directory that s3lake caches in: `S3LAKE_CACHE`, or the user's cache directory of this system."""
    return Path(os.environ.get("S3LAKE_CACHE") or platformdirs.user_cache_dir("s3lake")).expanduser()


def resolve(name: str, coordinates: Sequence[str]) -> tuple[Path, ...]:
    """Resolves coordinates with everything they depend on, once; later calls only list the cached files.

    Set `S3LAKE_IVY_SETTINGS` to an Ivy settings file to resolve from other repositories than Maven Central.

    Args:
        name: what the jars are for; the readable part of the cached directory's name.
        coordinates: the artifacts to resolve together, as `group:artifact:version`.

    Returns:
        The jar files, sorted by name.

    Raises:
        ConfigurationError: Java or pyspark is missing, or the cache cannot be written to.
        TransientError: Ivy did not find or did not get everything.
    """
    artifacts = sorted({*coordinates})
    digest = hashlib.sha256("\n".join(artifacts).encode()).hexdigest()[:12]
    target = cache_dir() / "jars" / f"{name}-{digest}"
    # The directory appears by one rename, so its being there means that it is complete.
    try:
        if not target.is_dir():
            _resolve_into(target, artifacts)
        return tuple(sorted(target.glob("*.jar")))
    except OSError as error:
        raise ConfigurationError(
            f"{target.parent} cannot be written to ({error.strerror}), and the jars of {name} have to be fetched into "
            f"it once: some 250 MB while they are. Let it be written to, or set S3LAKE_CACHE to a directory that can"
        ) from error


def kafka_broker_jars() -> tuple[Path, ...]:
    """The class path of an Apache Kafka broker, with a logger that writes to stderr."""
    # The broker's own dependencies hold the logging facade only; without a binding it ends without a message.
    return resolve("kafka-broker", [f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", "org.slf4j:slf4j-simple:1.7.36"])


def find_java() -> Path:
    """The `java` of `JAVA_HOME`, else of `PATH`, when Spark runs on it.

    Raises:
        ConfigurationError: there is none, it does not start, or its version is not supported.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise ConfigurationError(f"JAVA_HOME is {home}, but there is no program {java}.\n{_GET_JAVA}")
        source = "JAVA_HOME"
    else:
        program = shutil.which("java")
        if program is None:
            raise ConfigurationError(
                f"No Java found: JAVA_HOME is not set and PATH has no java. Spark and Kafka run on it.\n{_GET_JAVA}"
            )
        java, source = Path(program), "PATH"
    match = re.search(r'version "(?:1\.)?(\d+)', read_java_version(java))
    major = int(match[1]) if match else None
    if major not in JAVA_MAJORS:
        what = "does not start or does not tell its version" if major is None else f"is version {major}"
        allowed = " or ".join(map(str, JAVA_MAJORS))
        raise ConfigurationError(f"Java at {java} (from {source}) {what}; Spark 4 runs on {allowed}.\n{_GET_JAVA}")
    return java


def quote_option(option: str) -> str:
    """Return an option of a JVM as a list of options has it: Spark divides the list at spaces outside of quotes."""
    if not re.search(r"[\s'\"\\]", option):
        return option
    return '"' + re.sub(r'(["\\])', r"\\\1", option) + '"'


def make_java_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a JVM reads names of files as this process does.

    In the locale C, which schedulers and images set, Python reads them as UTF-8, and Java as ASCII.
    """
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "C")
    return {**environment, "LC_ALL": "C.UTF-8"} if locale in ("C", "POSIX") else dict(environment)


def read_java_version(java: Path) -> str:
    """Return what `java -version` prints, without the options that it gets from variables. Empty if it does not start.

    It is run once: each run is a JVM.
    """
    try:
        return _run_java_version(java, java.stat().st_mtime_ns)
    except OSError:
        return ""


@lru_cache(maxsize=8)
def _run_java_version(java: Path, _changed: int) -> str:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (run.stderr + run.stdout).splitlines(keepends=True) if run.returncode == 0 else []
    return "".join(line for line in lines if "Picked up " not in line)


def pyspark_jars_dir() -> Path:
    """Return the directory of Spark's own jars.

    Raises:
        ConfigurationError: pyspark is not installed.
    """
    # Looked up, not imported: importing pyspark costs more than everything here.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("pyspark is not installed in this Python. Install it: pip install 'pyspark>=4,<5'")
    return Path(spec.origin).parent / "jars"


def _resolve_into(target: Path, coordinates: Sequence[str]) -> None:
    java = find_java()
    ivy = next(iter(sorted(pyspark_jars_dir().glob("ivy-*.jar"))), None)
    if ivy is None:
        raise ConfigurationError(
            f"No ivy-*.jar in {pyspark_jars_dir()}. Reinstall pyspark: pip install 'pyspark>=4,<5'"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        here = Path(scratch)
        (here / "ivy.xml").write_text(_ivy_request(coordinates), encoding="utf-8")
        # Relative to `here`: parentheses and brackets of a path are signs of Ivy's patterns.
        command = [str(java.absolute()), "-jar", str(ivy.absolute()), "-ivy", "ivy.xml", "-confs", "default"]
        # Ivy's cache takes no locks by default, so every process has its own.
        command += ["-cache", "cache", "-retrieve", "jars/[artifact]-[revision](-[classifier]).[ext]"]
        settings = os.environ.get("S3LAKE_IVY_SETTINGS")
        if settings:
            command += ["-settings", str(Path(settings).absolute()) if Path(settings).exists() else settings]
        _run_ivy(command, here, coordinates)
        try:
            (here / "jars").rename(target)
        except OSError:
            # Another process was first; what it put there is the same.
            if not target.is_dir():
                raise


def _run_ivy(command: Sequence[str], directory: Path, coordinates: Sequence[str]) -> None:
    names = ", ".join(coordinates)
    remedy = (
        "Check the network and try again; behind a mirror, set S3LAKE_IVY_SETTINGS to an Ivy settings file that "
        "names it; behind a proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=... -Dhttps.proxyPort=...'."
    )
    try:
        run = subprocess.run(
            command,
            cwd=directory,
            env=make_java_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_RESOLVE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TransientError(f"Resolving {names} took longer than {_RESOLVE_TIMEOUT_S:.0f} s. {remedy}") from error
    if run.returncode != 0:
        tail = run.stdout[-_TAIL_CHARS:].strip()
        raise TransientError(f"Resolving {names} failed. {remedy}\nThe end of Ivy's output:\n{tail}")


def _ivy_request(coordinates: Sequence[str]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
        ' conf="default->default"/>'
        for group, artifact, version in (coordinate.split(":") for coordinate in coordinates)
    )
    return (
        '<ivy-module version="2.0"><info organisation="s3lake" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
