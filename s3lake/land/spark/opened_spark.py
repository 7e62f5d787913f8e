"""What Spark's jobs run in: tasks need a context only, and SQL a session, which takes as much CPU to make as the rest.

A session of another program, or of Spark Connect, is taken as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.land.spark.private_pyspark import find_context

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    OpenedSpark: TypeAlias = SparkContext | SparkSession


def is_session(opened: OpenedSpark) -> bool:
    """Return whether it is a session. A context is s3lake's own."""
    from pyspark import SparkContext

    return not isinstance(opened, SparkContext)


def find_session(opened: OpenedSpark) -> SparkSession:
    """Return the session, which is made if there is only a context."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate() if isinstance(opened, SparkContext) else opened


def run_nothing(opened: OpenedSpark) -> None:
    """Run a job without work, which fails if Spark has ended."""
    context = find_context(opened)
    if context is None:
        find_session(opened).range(1).collect()
    else:
        context.parallelize([0], 1).collect()
