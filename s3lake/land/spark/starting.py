"""Messages while something starts: it takes seconds, on a busy machine a minute, and looks like a standstill."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY_S = 5.0


@contextmanager
def tell_start(tell: Callable[[str], None], what: str = "Spark session", every_s: float = _EVERY_S) -> Iterator[None]:
    """Tell that something starts, every few seconds that it still does, and at the end how long it took."""
    began, done = time.monotonic(), threading.Event()

    def go_on() -> None:
        while not done.wait(every_s):
            tell(f"{what}: still starting after {time.monotonic() - began:.0f} s")

    tell(f"{what}: starting")
    teller = threading.Thread(target=go_on, name="s3lake-starting", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
    tell(f"{what}: ready after {time.monotonic() - began:.1f} s")


def is_started() -> bool:
    """Return whether this thread has a context or a session of Spark. PySpark is not imported to find out."""
    if "pyspark" not in sys.modules:
        return False
    from s3lake.land.spark.private_pyspark import find_active_context

    if find_active_context() is not None:
        return True
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None
