"""What Spark forks its Python workers from: pyspark's daemon, with all that landing needs imported once before.

Forked workers share these modules' memory, and the collection of garbage that pyspark orders after every task does not
walk through them.
"""

import contextlib
import gc
import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_NEEDED = (
    "boto3",
    "confluent_kafka",
    "pandas",  # pyarrow looks for it when it makes its first array
    "pyspark.worker",
    "s3lake.land.task.pipeline",
    "s3lake.source.kafka.reader",
    "s3lake.index.store.s3_store",
)


def leave_archives() -> None:
    """Take pyspark.zip, py4j.zip and a jar from the path, which Spark puts first, where pyspark is installed.

    Python compiles what it imports from an archive again in each process, and reads the archive's list of files again
    with each task, because pyspark invalidates the caches of imports then: a tenth of a CPU second.
    """
    others = [entry for entry in sys.path if not Path(entry).is_file()]
    pyspark, py4j = (PathFinder.find_spec(name, others) for name in ("pyspark", "py4j"))
    if pyspark is None or py4j is None or pyspark.origin is None:
        return  # Spark was not installed by pip: its archives are all there is
    for archive in {*sys.path} - {*others}:
        if Path(pyspark.origin).parent in Path(archive).parents:
            sys.path.remove(archive)
            sys.path_importer_cache.pop(archive, None)


def add_directory() -> None:
    """Let workers import modules of the directory that they are started in, after all others."""
    if getattr(sys.flags, "safe_path", False):  # else Python has put it first
        with contextlib.suppress(FileNotFoundError):  # it was deleted
            sys.path.append(str(Path.cwd()))


def main() -> None:
    """Import what is needed, and be pyspark's daemon."""
    leave_archives()
    add_directory()
    for name in _NEEDED:
        importlib.import_module(name)
    from pyspark import daemon

    gc.collect()
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
