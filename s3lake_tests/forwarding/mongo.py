"""FerretDB on a free port: MongoDB's protocol and its operations over SQLite, without transactions."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from s3lake.demo.process import free_port, free_ports, spawn
from s3lake_tests.processes import served

_UP_S = 60.0


def program() -> Path | None:
    """What `go build` made of `ferretdb/`; None where nobody has built it."""
    named = "s3lake-ferretdb"
    there = shutil.which(named) or shutil.which(named, path=str(Path.home() / "go" / "bin"))
    return Path(there) if there else None


@contextmanager
def serving() -> Iterator[str]:
    """Gives the address of a server, in a directory that goes with it."""
    binary = program()
    assert binary is not None, "FerretDB is not built"
    home, [port] = Path(tempfile.mkdtemp(prefix="s3lake-ferretdb-")), free_ports(1)
    (home / "data").mkdir()
    command = [binary, f"127.0.0.1:{port}", f"file:{home / 'data'}/"]
    with spawn(command, home / "log", remove=home) as process:
        served(process, _UP_S, lambda: not free_port(port))
        yield f"mongodb://127.0.0.1:{port}"
