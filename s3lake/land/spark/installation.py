"""Whether a session can do the work: it is asked once, before anything is begun.

Its tasks need the s3lake and the Python that a run has, and a session that s3lake has not made may lack more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from s3lake.errors import ConfigurationError, S3LakeError, SparkUnavailableError, TaskFailedError
from s3lake.land.spark.failures import summarize, translate_spark_error
from s3lake.land.spark.private_pyspark import find_context

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_AGREED = "spark.s3lake.installation"
_OURS = "ours"
OURS = {_AGREED: _OURS}
"""The setting of a context whose workers are started from this process."""
_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00"}
_LEAST_SPARK = 4
_WITHOUT_US = re.compile(r"No module named '?s3lake")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\D*(\d+\.\d+)")


class Installation(NamedTuple):
    """The versions that a process runs.

    Attributes:
        version: the version of s3lake; empty if there is none.
        digest: a digest of its code, which in a checkout changes without the version.
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
    return Installation(*_build_reader()())


def is_ours(context: SparkContext) -> bool:
    """Return whether the workers of a context are started from this process: there is nothing to ask."""
    return context.getConf().get(_AGREED) == _OURS


def fit(session: SparkSession, *, sql: bool = False) -> SparkSession:
    """See that a session, of whoever made it, can do the work.

    Args:
        sql: whether a sink's `sql` is part of the work.

    Raises:
        ConfigurationError: it is not a session, or has a setting with which columns would be others.
        SparkUnavailableError: it is of another Spark, or its workers have another s3lake or Python.
    """
    if not hasattr(session, "range") or not hasattr(session, "conf"):
        raise ConfigurationError(
            f"spark: {type(session).__name__} is not a Spark session: give a resource whose spark_session is one, as "
            "s3lake.SparkResource or dagster_pyspark.LazyPySparkResource"
        )
    if int(session.version.partition(".")[0]) < _LEAST_SPARK:
        raise SparkUnavailableError(
            f"the session is of Spark {session.version}, and s3lake needs Spark {_LEAST_SPARK}: nothing was begun. "
            f"Take a cluster or a Spark Connect server of PySpark's own version, {_pyspark()}"
        )
    zone = session.conf.get("spark.sql.session.timeZone", "") if sql else "UTC"
    if zone not in _UTC:
        raise ConfigurationError(
            f"the session's spark.sql.session.timeZone is {zone}, and sql reads and writes times in UTC: set it to UTC "
            "where the session is made, or take sql out of the sink"
        )
    context = find_context(session)
    if context is None or not is_ours(context):
        _try(session)
    return session


def _try(session: SparkSession) -> None:
    try:
        agree(session)
    except S3LakeError:
        raise
    except Exception as error:
        cause = translate_spark_error(error, "asking the session's workers")
        if not isinstance(cause, TaskFailedError):
            raise cause from None
        raise SparkUnavailableError(
            f"the session cannot run a Python function on one row: {summarize(str(error))}; nothing was begun. It is "
            f"of Spark {session.version}, and this process has PySpark {_pyspark()}: have one version on both sides, "
            "and s3lake with all that it needs where Spark's Python workers run"
        ) from None


def _pyspark() -> str:
    import pyspark

    return str(pyspark.__version__)


def agree(session: SparkSession) -> None:
    """See that the session's workers run what this process runs.

    Raises:
        SparkUnavailableError: they do not: a run after the upgrade passes, as it is.
    """
    own = here()
    if session.conf.get(_AGREED, "") == own.digest:
        return
    theirs = _workers(session)
    if theirs != own:
        raise SparkUnavailableError(
            f"Spark's Python workers have {theirs}, and this process has {own}; nothing was begun. Install the same "
            "where Spark runs (the Spark Connect server, the cluster's executors), and start that again, or run this "
            "with what they have"
        )
    session.conf.set(_AGREED, own.digest)


def _workers(session: SparkSession) -> Installation:
    read_installation = _build_reader()

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        list(batches)
        yield pa.RecordBatch.from_pylist([dict(zip(("version", "digest", "python"), read_installation(), strict=True))])

    try:
        schema = "version string, digest string, python string"
        (row,) = session.range(0, 1, 1, 1).mapInArrow(answer, schema).collect()
    except Exception as error:
        if _WITHOUT_US.search(
            str(error)
        ):  # what workers are forked from, `s3lake.land.task.worker_daemon`, was not found
            return here()._replace(version="", digest="")
        if python := _OTHER_PYTHON.search(str(error)):
            return here()._replace(python=python[1])
        raise
    return Installation(*row)


def _build_reader() -> Callable[[], tuple[str, str, str]]:
    # A function within a function goes to a worker as it is, instead of by its name: that may have another one.
    def read_installation() -> tuple[str, str, str]:
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

    return read_installation
