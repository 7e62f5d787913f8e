"""Spark's classes as an archive that its JVM maps instead of loading and verifying each one (AppCDS).

Measured: a session and its first job cost a third less CPU with it. The first session of a machine writes the archive
when it ends, into the user's cache; another Java, another Spark or a changed class path has an archive of its own. One
that was not used for a month is deleted: it has 140 MB.
"""

import atexit
import contextlib
import hashlib
import os
import subprocess
import time
from pathlib import Path

from s3lake.land.spark import jars, private_pyspark

WRITING_S = 300.0
"""Until a JVM that writes the archive at its end has ended: 5 s on a quiet machine, minutes on a busy one."""
UNUSED_S = 30 * 86_400.0
"""After so long an archive that no JVM has read is deleted, and so is what a killed process has left of one."""
# Java prints on stdout what it leaves out of an archive, and that it works without one that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_ARCHIVE = ".jsa"
_unfinished: Path | None = None
"""The file that this process's JVM writes when it ends; None if it writes none. It is then renamed to the archive."""


def java_options(java: Path) -> str:
    """Return options with which a JVM of Spark uses the archive, or writes it at its end; empty if neither works."""
    global _unfinished
    try:
        archive = find_archive(java)
        _delete_unused(archive)
        if archive.exists():
            return f"{jars.quote_option(f'-XX:SharedArchiveFile={archive}')} {_QUIET}"
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""  # a cache that cannot be written: every start costs what it cost before
    if _unfinished is None:
        atexit.register(keep)
    _unfinished = archive.with_suffix(f".{os.getpid()}")
    return f"{jars.quote_option(f'-XX:ArchiveClassesAtExit={_unfinished}')} {_QUIET}"


def is_written() -> bool:
    """Return whether the JVM of this process writes the archive when it ends."""
    return _unfinished is not None


def find_archive(java: Path) -> Path:
    """Return where the archive is, or will be: its name contains the version of Java and of Spark's jars.

    Java checks an archive again, and works without one that does not fit.
    """
    digest = hashlib.sha256(os.fsencode(java.resolve()) + jars.read_java_version(java).encode())
    for jar in sorted(jars.pyspark_jars_dir().glob("*.jar")):
        status = jar.stat()
        # Whole seconds: Java compares no more, and a layer of an image may keep no more.
        digest.update(f"{jar} {status.st_size} {int(status.st_mtime)}".encode())
    return jars.cache_dir() / "classes" / f"{digest.hexdigest()[:16]}{_ARCHIVE}"


def _delete_unused(used: Path) -> None:
    """Delete old files next to the archive that is used; a JVM that has one of them open keeps what it has mapped.

    A file system that notes no reads has only the time of writing: there an archive is written again each month.
    """
    oldest = time.time() - UNUSED_S
    for file in used.parent.glob("*.*"):
        with contextlib.suppress(OSError):  # another process has deleted it, or the cache cannot be written
            status = file.stat()
            if file != used and max(status.st_atime, status.st_mtime) < oldest:
                file.unlink()


def keep() -> None:
    """Let the JVM end and write its archive, if it is to write one. Called when a command or a process ends."""
    process = private_pyspark.find_gateway_process()
    if process is None:  # no session was made
        return
    written = _take_unfinished()
    if written is None:
        return
    archive = written.with_suffix(_ARCHIVE)
    try:
        _await_end(process)
        written.rename(archive)
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return
    for left in archive.parent.glob(f"{archive.stem}.*"):
        if left != archive:  # of processes that were killed, or that are late
            left.unlink(missing_ok=True)


def discard() -> None:
    """Delete what a JVM that was killed has written of its archive."""
    written = _take_unfinished()
    if written is not None:
        with contextlib.suppress(OSError):
            written.unlink(missing_ok=True)


def _take_unfinished() -> Path | None:
    """Return the file that is to be renamed or deleted, once: a later call returns None until a JVM writes again."""
    global _unfinished
    written, _unfinished = _unfinished, None
    return written


def _await_end(process: subprocess.Popen[bytes]) -> None:
    context = private_pyspark.find_active_context()
    if context is not None:
        context.stop()
    if process.stdin is not None:
        process.stdin.close()  # which ends the JVM
    process.wait(WRITING_S)
