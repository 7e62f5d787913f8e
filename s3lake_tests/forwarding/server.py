"""A PostgreSQL server of Debian's, on a free port, in a directory that goes with it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from s3lake.demo.process import free_ports, spawn
from s3lake_tests.processes import served

PASSWORD = "hunter2-postgres"
_UP_S = 60.0


def programs() -> Path | None:
    """Where the newest one's programs are; Debian has them on no PATH."""
    on_path = shutil.which("initdb")
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return Path(on_path).parent if on_path else homes[-1].parent if homes else None


@contextmanager
def serving() -> Iterator[str]:
    """Gives what libpq is to be told of a database on it."""
    directory = programs()
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
    subprocess.run([*as_user, directory / "initdb", *cluster, *make], check=True, capture_output=True, timeout=120)
    listen = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(home), "-c", "fsync=off"]
    conninfo = f"host=127.0.0.1 port={port} user=lake password={PASSWORD} dbname=postgres"
    with spawn([*as_user, directory / "postgres", *cluster, *listen], home / "log", remove=home) as process:
        served(process, _UP_S, lambda: _answers(conninfo))
        yield conninfo


def _answers(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
