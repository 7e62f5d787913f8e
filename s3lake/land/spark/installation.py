"""Whether Spark's tasks find the s3lake and the Python that a run has: a session is asked once, before work begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from s3lake.errors import SparkUnavailableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_AGREED = "spark.s3lake.installation"
_WITHOUT_US = re.compile(r"No module named '?s3lake")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\D*(\d+\.\d+)")


class Installation(NamedTuple):
    """What a process runs.

    Attributes:
        version: of s3lake; empty where there is none.
        digest: of its code, which in a checkout changes without the version.
        python: the version that Spark compares, without its last number.
    """

    version: str
    digest: str
    python: str

    def __str__(self) -> str:
        ours = f"s3lake {self.version} (code {self.digest[:8]})" if self.version else "no s3lake"
        return f"{ours} and Python {self.python}"


@lru_cache
def here() -> Installation:
    """This process's."""
    return Installation(*_installed()())


def agree(session: SparkSession) -> None:
    """See that the session's workers run what this process runs.

    Raises:
        SparkUnavailableError: they do not: a run after the upgrade passes, as it is.
    """
    ours = here()
    if session.conf.get(_AGREED, "") == ours.digest:
        return
    theirs = _workers(session)
    if theirs != ours:
        raise SparkUnavailableError(
            f"Spark's Python workers have {theirs}, and this process has {ours}; nothing was begun. Install the same "
            "where Spark runs (the Spark Connect server, the cluster's executors), and start that again, or run this "
            "with what they have"
        )
    session.conf.set(_AGREED, ours.digest)


def _workers(session: SparkSession) -> Installation:
    installed = _installed()

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        list(batches)
        yield pa.RecordBatch.from_pylist([dict(zip(("version", "digest", "python"), installed(), strict=True))])

    try:
        schema = "version string, digest string, python string"
        (row,) = session.range(0, 1, 1, 1).mapInArrow(answer, schema).collect()
    except Exception as error:
        if _WITHOUT_US.search(str(error)):  # what workers are forked from, `s3lake.land.task.workers`, was not found
            return here()._replace(version="", digest="")
        if python := _OTHER_PYTHON.search(str(error)):
            return here()._replace(python=python[1])
        raise
    return Installation(*row)


def _installed() -> Callable[[], tuple[str, str, str]]:
    # A function within a function goes to a worker as it is, instead of by its name: that may have another one.
    def installed() -> tuple[str, str, str]:
        import hashlib
        import platform
        from importlib import metadata, util
        from pathlib import Path

        python, ours = platform.python_version().rpartition(".")[0], util.find_spec("s3lake")
        if ours is None or ours.origin is None:
            return "", "", python
        try:
            version = metadata.version("s3lake")
        except metadata.PackageNotFoundError:
            version = "of a checkout"
        package, digest = Path(ours.origin).parent, hashlib.sha256()
        for path in sorted(package.rglob("*.py")):
            digest.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
        return version, digest.hexdigest(), python

    return installed
