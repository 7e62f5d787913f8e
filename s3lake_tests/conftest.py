"""How tests run: Hypothesis, the garbage collector, and the last line. Servers are in `kit/servers.py`."""

import atexit
import gc
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from s3lake_tests.records.schema.registry.server import SchemaRegistry

pytest_plugins = ["s3lake_tests.kit.servers"]
# Helpers assert too: their failures show the values, as those in test modules do.
pytest.register_assert_rewrite(*(f"s3lake_tests.{path.stem}" for path in Path(__file__).parent.glob("[a-z]*")))

EXAMPLES = int(os.environ.get("S3LAKE_EXAMPLES", "1"))
"""How many times as many examples Hypothesis tries; read now, for the tests do not see S3LAKE_ variables."""

# No deadline: how long an example takes is the machine's business, and its load's.
settings.register_profile(
    "suite",
    max_examples=25 * EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
settings.load_profile("suite")


def slow_after(count: int, reason: str, values: Iterable[Any]) -> list[Any]:
    """Return the values of a parametrized test as its parameters; those after the first `count` are slow."""
    given = pytest.param(None)
    parameters = [value if isinstance(value, type(given)) else pytest.param(value) for value in values]
    slow = pytest.mark.slow(reason)
    return [*parameters[:count], *(one._replace(marks=[*one.marks, slow]) for one in parameters[count:])]


LONGEST_ID = 40
"""How many characters of a parameter the name of its test has, if it has several parameters."""
LONGEST_ONLY_ID = 70
"""How many it has if one text names the whole case."""


def short_id(value: object, longest: int = LONGEST_ID) -> str:
    """Return a parameter as the name of its test has it: on one line, and cut if it is longer than can be read."""
    text = repr(value)[2:-1] if isinstance(value, bytes) else str(value).encode("unicode_escape").decode()
    return text if len(text) <= longest else f"{text[:longest]}..."


@pytest.hookimpl(tryfirst=True)
def pytest_make_parametrize_id(val: object) -> str | None:
    """Cut long texts; others are named as pytest names them."""
    return short_id(val) if isinstance(val, str | bytes) and len(repr(val)) > LONGEST_ID else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where pictures of the UI go, and where a run of several parts keeps what it did not run."""
    parser.addoption("--pictures", type=Path, metavar="DIR", help="take pictures of Dagster's UI into this directory")
    parser.addoption(
        "--not-run",
        type=Path,
        metavar="FILE",
        help="print last what this run, and the part before it that FILE records, did not run",
    )


def pytest_configure(config: pytest.Config) -> None:
    """PySpark leaves the sockets of its collect() to the garbage collector, which may come in anybody's test.

    A shell lets what runs in the background ignore SIGINT, and processes of tests would inherit that.
    """
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class TestTimeout(Exception):
    """A test has taken longer than its limit."""

    __test__ = False


class OutOfTime(KeyboardInterrupt):
    """The limit of a test has passed. An interrupt, since Hypothesis may call anything else a flaky strategy."""


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Literal[True] | None:
    """Interrupt a test where `pytest-timeout` would raise a failure; elsewhere it does as it does."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None

    def end(*_: object) -> None:
        raise OutOfTime(f"a timeout: {item.nodeid} has taken more than {settings.timeout:g} s")

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # what pytest-timeout calls
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Report a limit that passes in a fixture as a failure of this test; an interrupt would end the whole run."""
    return (yield from report_timeout())


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: "pytest.FixtureDef[object]", request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Let pytest keep the failure for the tests that share the fixture, as it does not keep an interrupt."""
    try:
        return (yield from report_timeout())
    except TestTimeout as error:
        fixturedef.cached_result = (None, fixturedef.cache_key(request), (error, error.__traceback__))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Report a limit that passes in the test's own code in the same way."""
    return (yield from report_timeout())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Report a limit that passes while fixtures end in the same way."""
    return (yield from report_timeout())


def report_timeout() -> Generator[None, object, object]:
    """What the hooks above do: a test that is out of time has failed."""
    try:
        return (yield)
    except OutOfTime as limit:
        raise TestTimeout(str(limit)).with_traceback(limit.__traceback__) from None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: while a worker waits for a silence, a pause, a process, another one works."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is slow has a reason, and each directory keeps one that is not. UI tests begin: they wait long."""
    items.sort(key=lambda item: item.path.parent.name != "ui")
    quick, slow = set(), set()
    for item in items:
        marks = list(item.iter_markers("slow"))
        if not all(len(mark.args) == 1 and isinstance(mark.args[0], str) and mark.args[0] for mark in marks):
            raise pytest.UsageError(f"{item.nodeid}: pytest.mark.slow needs the reason, as its one argument")
        (slow if marks else quick).add(item.path.parent)
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and slow - quick:
        raise pytest.UsageError(f"all tests here are slow, and `make test` runs none: {sorted(map(str, slow - quick))}")


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any], dict[str, Any]]:
    """Leave out what the controller does not read: a third of a worker's three reports of a test is names and marks."""
    data = yield
    data["keywords"] = {}
    return data


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests live until the end: walking a million objects again and again took a fifth of a run's CPU.

    What a test leaves behind is looked for once in a while: with Python's own thresholds that was a fifteenth of it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # What is held to the very end DuckDB calls leaked: what is frozen, and all that Hypothesis's callback can see.
        atexit.register(gc.unfreeze)
        atexit.register(gc.callbacks.clear)
        gc.set_threshold(50_000, 10, 10)
        gc.enable()


_LEVELS = {"fast": 0, "real or long": 1, "slow": 2}
_COMMANDS = {"real or long": "make test", "slow": "make test-all"}
_deselected = pytest.StashKey[Counter[str]]()


def _level_of(item: pytest.Item) -> str:
    if item.get_closest_marker("slow"):
        return "slow"
    return "real or long" if item.get_closest_marker("real") or item.get_closest_marker("long") else "fast"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the deselected tests that take longer than all that run: another command runs them."""
    highest = max((_LEVELS[_level_of(item)] for item in session.items), default=0)
    counts = session.config.stash.get(_deselected, Counter())
    left = {level: count for level, count in counts.items() if _LEVELS[level] > highest}
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = left
    session.config.stash[_deselected] = Counter(left)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what `-m` and `-k` leave out."""
    if items:
        items[0].config.stash.setdefault(_deselected, Counter()).update(map(_level_of, items))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over from a worker what it has counted: all of them collect the same."""
    left = getattr(node, "workeroutput", {}).get("left")
    if left is not None:
        node.config.stash[_deselected] = Counter(left)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Print in the last line what was not run, why, and how to run it."""
    result = yield
    file: Path | None = session.config.getoption("--not-run")
    if file is not None and not hasattr(session.config, "workeroutput"):
        terminal: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        skipped = {report.nodeid: report.longrepr[2] for report in terminal.stats.get("skipped", ())}
        skipped |= json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(skipped))
        reasons = Counter(reason.removeprefix("Skipped: ") for reason in skipped.values())
        lines = [f"{count} ({reason})" for reason, count in sorted(reasons.items())]
        left = session.config.stash.get(_deselected, Counter())
        lines += [f"{count} {level} ({_COMMANDS[level]} runs them)" for level, count in sorted(left.items())]
        terminal.write_line(f"not run: {'; '.join(lines)}" if lines else "not run: none, everything was run")
    return result


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of temporary files, which takes a megabyte."""
    with _mounted(tmp_path / "full", "size=1m", monkeypatch) as directory:
        yield directory


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of temporary files, which can only be read."""
    with _mounted(tmp_path / "closed", "ro", monkeypatch) as directory:
        yield directory


@contextmanager
def _mounted(directory: Path, option: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", option, "s3lake", directory]
    if (
        not hasattr(os, "geteuid")
        or os.geteuid()
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("a file system of a test's own takes root")
    try:
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


@pytest.fixture(scope="module")
def registry() -> Iterator["SchemaRegistry"]:
    """A Schema Registry for a module's tests: schemas of all of them have their own ids."""
    from s3lake_tests.records.schema.registry.server import serving

    with serving() as registry:
        yield registry
