"""What Python imports at its start where this directory is in its path: the process then goes by the shared clock.

`time.time` and Dagster's "now" come from it, and the sensor daemon waits by it between its rounds. Everything else
keeps the world's time: sleeps, timeouts, signatures of requests, gRPC, Kafka, the JVM.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_path = os.environ.get("S3LAKE_BENCHMARK_CLOCK")
_POLL_S = 0.05


class _Waiting:
    """An event of which `wait` takes seconds of the clock."""

    def __init__(self, event: threading.Event, now: Callable[[], float]) -> None:
        self._event, self._now = event, now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._event, name)

    def wait(self, seconds: float) -> bool:
        until = self._now() + seconds
        while self._now() < until:
            if self._event.wait(_POLL_S):
                return True
        return self._event.is_set()


class _Finder:
    """Changes modules when they are imported, and imports none by itself."""

    def __init__(self, changes: dict[str, Callable[[Any], None]]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        change = self._changes.get(name)
        spec = PathFinder.find_spec(name, path, target) if change else None
        if spec is None or spec.loader is None or change is None:
            return None
        load = spec.loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            change(module)

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


def _go_by(path: str) -> None:
    import time

    from shared_clock import SharedClock

    clock, world = SharedClock(path), time.time

    def shown() -> float:
        # gRPC makes deadlines of it, which its core holds against the world's clock.
        name = sys._getframe(1).f_globals.get("__name__", "")
        return world() if name.startswith("grpc.") else clock.time()

    time.time = shown
    time.time_ns = lambda: int(clock.time() * 1e9)

    def now(module: Any) -> None:
        from datetime import datetime, timezone

        module._mockable_get_current_datetime = lambda: datetime.fromtimestamp(clock.time(), timezone.utc)

    def rounds(module: Any) -> None:
        loop = module.execute_sensor_iteration_loop

        def waiting(context: Any, logger: Any, shutdown: threading.Event, *more: Any, **named: Any) -> Any:
            return loop(context, logger, _Waiting(shutdown, clock.time), *more, **named)

        module.execute_sensor_iteration_loop = waiting

    sys.meta_path.insert(0, _Finder({"dagster._time": now, "dagster._daemon.sensor": rounds}))  # type: ignore[arg-type]


if _path:
    _go_by(_path)
