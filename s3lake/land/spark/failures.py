"""What an exception of Spark means: its several trees of exceptions can be told apart only by their text."""

import logging
import re

from s3lake import errors
from s3lake.errors import SparkUnavailableError, TaskFailedError

_log = logging.getLogger(__name__)
_OURS = re.compile(r"\bs3lake\.errors\.(\w+): ([^\n]*)")
# A worker, an executor, the JVM or the server behind Connect ended.
_DIED = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "ExecutorLostFailure",
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
    "Answer from Java side is empty",
    "An error occurred while trying to connect to the Java server",
    "java.lang.OutOfMemoryError",
    "No space left on device",
)

_CALLED = re.compile(r"An error occurred while calling \S+$")  # py4j's first line; the next one names the error

# What a client of Spark Connect gets if its server ended, was started again, or has closed the session.
_LOST = (
    "StatusCode.UNAVAILABLE",
    "INVALID_HANDLE",
    "RETRIES_EXCEEDED",
    "NO_ACTIVE_SESSION",
    "RESPONSE_ALREADY_RECEIVED",
    "incorrect server side session identifier",
    "No active or default Spark session found",  # it listens already and is not ready
)


def translate_spark_error(error: Exception, what: str) -> Exception:
    """Translate an exception of Spark.

    Args:
        error: an error of a job, or of a session that starts; an error of other code is returned unchanged.
    """
    if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j", "grpc") and not isinstance(error, OSError):
        return error
    text = str(error)
    _log.debug("Spark failed while %s: %s", what, text)
    raised = list(_OURS.finditer(text))
    if raised:  # by a task whose outcome is not a row
        return errors.rebuild_error(raised[-1][1], raised[-1][2].strip())
    line = summarize(text) or type(error).__name__
    if any(sign in text for sign in _LOST):
        return SparkUnavailableError(
            f"the session at the Spark Connect server was lost while {what}: {line}. Nothing of this micro-batch is "
            "visible; the next try makes a session again. If it stays so, see whether the server runs (s3lake spark "
            "--check ADDRESS) and has memory enough"
        )
    if any(sign in text for sign in _DIED) or isinstance(error, OSError):
        return SparkUnavailableError(
            f"Spark went away while {what}: {line}. Nothing of this micro-batch is visible. If it stays so, see "
            "whether memory was short (spark.driver_memory, memory_budget), and whether a cluster's master answers"
        )
    return TaskFailedError(
        f"Spark failed while {what}: {line}. Nothing of this micro-batch is visible. The log has the whole trace at "
        "level DEBUG; s3lake does not know this failure: please report it"
    )


def find_sql_refusal(error: Exception) -> str | None:
    """Return why Spark refuses an SQL statement, in one line. Return None if the error is another one."""
    if type(error).__name__ not in ("AnalysisException", "ParseException"):  # PySpark has several trees of them
        return None
    return str(error).strip().splitlines()[0]


def summarize(text: str) -> str:
    """Return the last line of a Python trace in the text of Spark's exception, else the first line of the text."""
    traces = re.findall(r"^(\w[\w.]*(?:Error|Exception|Interrupt)\b.*)$", text, re.MULTILINE)
    lines = traces[-1:] or [line for line in text.splitlines() if line.strip() and not _CALLED.match(line)][:1]
    return lines[0].removeprefix(": ").strip()[:500].rstrip(".") if lines else ""
