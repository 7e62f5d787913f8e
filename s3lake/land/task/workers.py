"""What Spark forks its Python workers from: pyspark's daemon, with all that landing needs imported once before.

Forked workers share these modules' memory, and the collection of garbage that pyspark orders after every task does not
walk through them.
"""

import gc

import boto3  # noqa: F401
import confluent_kafka  # noqa: F401
import pandas  # noqa: F401 - pyarrow looks for it when it makes its first array
from pyspark import daemon, worker  # noqa: F401

from s3lake.land.task import pipeline  # noqa: F401
from s3lake.source.kafka import reader  # noqa: F401
from s3lake.store import s3  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]
