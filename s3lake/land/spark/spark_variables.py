"""Checks the variables that choose Spark and its Python, before a JVM starts: what fails then names none of them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from s3lake.errors import ConfigurationError

_NEEDED = ("s3lake", "pyarrow", "boto3", "confluent_kafka")
_ASK = f"""\
import importlib.util, sys
print("%d.%d" % sys.version_info[:2], *(name for name in {_NEEDED} if importlib.util.find_spec(name) is None))
"""
_ASKING_S = 60.0
_CORE = re.compile(r"spark-core_[\d.]+-(\d+\.\d+)")


def require_same_spark() -> None:
    """Raise ConfigurationError if SPARK_HOME names no Spark, or a Spark that PySpark does not fit."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return
    program = Path(home) / "bin" / "spark-submit"
    if not os.access(program, os.X_OK):
        raise ConfigurationError(
            f"SPARK_HOME is {home}, but there is no program {program}. Unset it: PySpark brings a Spark of its own"
        )
    import pyspark

    ours = ".".join(pyspark.__version__.split(".")[:2])
    for jar in (Path(home) / "jars").glob("spark-core_*.jar"):
        version = _CORE.match(jar.name)
        if version and version[1] != ours:
            raise ConfigurationError(
                f"SPARK_HOME is {home}, which has Spark {version[1]}, and PySpark is {pyspark.__version__}. Unset it: "
                f"PySpark brings a Spark of its own; or let it be a Spark {ours}"
            )


def require_same_python(python: str, setting: str) -> None:
    """Raise ConfigurationError if a Python of this machine cannot run tasks; `setting` is the name of what chose it."""
    program = shutil.which(python)
    if program is not None and Path(program).absolute() == Path(sys.executable).absolute():
        return
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    answer = _ask(program)
    if program is None:
        problem = "is not a program of this machine"
    elif not answer:
        problem = "does not start"
    elif answer[0] != ours:
        problem = f"has Python {answer[0]}, and this process has {ours}"
    elif missing := answer[1:]:
        problem = f"lacks {', '.join(missing)}"
    else:
        return
    raise ConfigurationError(
        f"{setting} is {python}, which {problem}. Spark's tasks run in it: unset it, or let it be a Python {ours} with "
        f"s3lake, for example {sys.executable}"
    )


def _ask(program: str | None) -> list[str]:
    """Return the version of a Python, and what it lacks. Return nothing if it does not answer."""
    if program is None:
        return []
    try:
        run = subprocess.run(
            [program, "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKING_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    answer = run.stdout.split()
    return answer if run.returncode == 0 and answer and re.fullmatch(r"\d+\.\d+", answer[0]) else []
