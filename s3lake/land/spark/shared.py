"""The session of a Spark Connect server that all runs of the same code share.

A server keeps Python workers for each session apart. Runs that share one find the process that workers are forked from,
with everything imported, and the workers of the run before. So the session's name is made of what must not differ:
the code of s3lake, Python, Spark, and the settings of the session.
"""

from __future__ import annotations

import itertools
import socket
import threading
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from s3lake.errors import ConfigurationError, SparkUnavailableError
from s3lake.land.spark.installation import agree, fit, here
from s3lake.plugins import require_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT = 15002
"""Spark Connect's own."""

_USER = "s3lake"  # a session belongs to a user too, and runs may have several
_SPACE = uuid.UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff")
_CONNECT_S = 5.0
_lock = threading.Lock()
_session: Any = None
# PySpark's destructor of a session ends a thread pool that all sessions have. Where the garbage collector calls it
# while another session hands a task to that pool, the process waits for itself: so none is ever collected.
_ended: list[Any] = []


def open_shared_session(master: str, settings: Mapping[str, str], active: SparkSession | None) -> SparkSession:
    """The shared session, made where this process or the server has none.

    Args:
        master: `sc://host:port`, with parameters of Spark Connect if need be.
        active: what this process has; one that s3lake has not made is left as it is.

    Raises:
        SparkUnavailableError: nothing listens there, or what does has another s3lake or Python.
    """
    global _session
    with _lock:
        if active is not None and active is not _session:
            return fit(active)
        _require_client()
        _reach(master)
        if _session is not None:
            if _lives(_session):
                return _session  # type: ignore[no-any-return]
            _forget(_session)
            _reach(master)  # which may have ended since
        # The name of a session that the server has closed cannot be used again.
        for number in itertools.count():
            session = _open(address(master, session_id(settings, number)), settings)
            if session is not None:
                try:
                    agree(session)
                except BaseException:
                    _forget(session)
                    raise
                _session = session
                return session
    raise AssertionError("numbers do not end")


def address(master: str, session_id: str) -> str:
    """`master` with the names of user and session, where it does not have its own."""
    own = {part.partition("=")[0] for part in master.partition(";")[2].split(";")}
    identity = [("user_id", _USER), ("session_id", session_id)]
    missing = [f"{name}={value}" for name, value in identity if name not in own]
    base = master.rstrip(";/") if ";" not in master else master.rstrip(";")
    return ";".join([base if ";" in base else f"{base}/", *missing])


def session_id(settings: Mapping[str, str], number: int = 0) -> str:
    """The name of the session for this code and these settings."""
    import pyspark

    parts = [*here(), pyspark.__version__, *map(str, sorted(settings.items()))]
    return str(uuid.uuid5(_SPACE, "\n".join([*parts, str(number)])))


def endpoint(master: str) -> str:
    """Host and port; what else an address holds may be secret."""
    host, port = _host_and_port(master)
    return f"{host}:{port}"


def _host_and_port(master: str) -> tuple[str, int]:
    try:
        parts = urlsplit(master)
        if parts.scheme != "sc" or not parts.hostname:
            raise ValueError
        return parts.hostname, parts.port or PORT
    except ValueError:
        raise ConfigurationError("spark.master: an address of Spark Connect is written sc://HOST:PORT") from None


def _require_client() -> None:
    """See that PySpark can be a client of Spark Connect: its own errors do not name the extra."""
    with require_extra("connect", "spark.master sc://"):
        import grpc_status.rpc_status  # noqa: F401 - PySpark imports it


def _reach(master: str) -> None:
    """Spark's own client would ask for ten minutes."""
    try:
        socket.create_connection(_host_and_port(master), timeout=_CONNECT_S).close()
    except OSError as error:
        raise SparkUnavailableError(
            f"no Spark Connect server answers at {endpoint(master)}: {error}. Start it, on that machine: s3lake spark"
        ) from None


def _open(address: str, settings: Mapping[str, str]) -> SparkSession | None:
    """Return the session of an address; None if the server has closed it."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as Remote

    try:
        # Without settings this asks the server nothing: the first that is asked may be in vain too.
        session: Any = SparkSession.builder.remote(address).getOrCreate()
        _be_patient(session)
        session.release_session_on_close = False  # it is not this process's alone
        session = SparkSession.builder.remote(address).config(map=dict(settings)).getOrCreate()
    except Exception as error:
        tried = Remote.getActiveSession()
        if tried is not None:
            _forget(tried)
        if "SESSION_CLOSED" in str(error):
            return None
        raise
    return session  # type: ignore[no-any-return]


def _lives(session: Any) -> bool:
    _be_patient(session)  # what was waited for in vain may have come back
    try:
        session.conf.get("spark.app.name")
    except Exception:
        return False
    return True


def _be_patient(session: Any) -> None:
    from s3lake.land.spark.patience import Patience

    session.client.set_retry_policies([Patience()])


def _forget(session: Any) -> None:
    """Close this process's end, and let the server keep its own."""
    session.release_session_on_close = False
    session.stop()
    _ended.append(session)
