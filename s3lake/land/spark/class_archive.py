"""Spark's classes as an archive that its JVM maps instead of loading and verifying each one (AppCDS).

Measured: a session and its first job cost a third less CPU with it. The first session of a machine writes the archive
when it ends, into the user's cache; another Java, another Spark or a changed class path has an archive of its own.
"""

import atexit
import hashlib
import os
import subprocess
from pathlib import Path

from s3lake.land.spark import jars, private_pyspark

WRITING_S = 300.0
"""Until a JVM that writes the archive at its end has ended: 5 s on a quiet machine, minutes on a busy one."""
_TOLD = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}  # Java prints with its version what they hold
# Java prints on stdout what it leaves out of an archive, and that it goes without one that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def java_options(java: Path) -> str:
    """Options with which a JVM of Spark uses the archive, or writes it at its end; nothing where that cannot be."""
    try:
        archive = find_archive(java)
        if archive.exists():
            return f"-XX:SharedArchiveFile={archive} {_QUIET}"
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""  # a cache that cannot be written: every start costs what it cost before
    written = archive.with_suffix(f".{os.getpid()}")
    atexit.register(_keep, written, archive)
    return f"-XX:ArchiveClassesAtExit={written} {_QUIET}"


def find_archive(java: Path) -> Path:
    """Return where the archive is, or will be: its name contains the version of Java and of Spark's jars.

    Java checks an archive once more, and goes without one that does not fit.
    """
    plain = {name: value for name, value in os.environ.items() if name not in _TOLD}
    version = subprocess.run([java, "-version"], capture_output=True, check=True, env=plain).stderr
    digest = hashlib.sha256(os.fsencode(java.resolve()) + version)
    for jar in sorted(jars.pyspark_jars_dir().glob("*.jar")):
        status = jar.stat()
        # Whole seconds: Java compares no more, and a layer of an image may keep no more.
        digest.update(f"{jar} {status.st_size} {int(status.st_mtime)}".encode())
    return jars.cache_dir() / "classes" / f"{digest.hexdigest()[:16]}.jsa"


def _keep(written: Path, archive: Path) -> None:
    """At this process's end: let the JVM end first, and make what it has written the archive."""
    process = private_pyspark.find_gateway_process()
    if process is None or process.stdin is None:  # the session was not made after all
        return
    context = private_pyspark.find_active_context()
    if context is not None:
        context.stop()
    process.stdin.close()  # which ends the JVM
    try:
        process.wait(WRITING_S)
        written.rename(archive)
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return
