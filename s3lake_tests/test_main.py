"""The process of a command: an interrupt ends it at any moment with 130, without a trace, after its cleanup."""

import os
import signal
import subprocess
import sys

import pytest

from s3lake_tests.kit.cost import PATIENCE_S

_PROGRAM = """
import io, os, signal, sys, time, types
{before}
def work():
{work}
    time.sleep({patience})
sys.modules["s3lake.cli"] = types.SimpleNamespace(main=work)
import s3lake
s3lake.cli = sys.modules["s3lake.cli"]
from s3lake.__main__ import main
main()
"""
_INTERRUPT = "signal.raise_signal(signal.SIGINT)"
_DESTRUCTOR = f"""
class Body:
    def __del__(self): {_INTERRUPT}
"""
_CLOSED_BY_C = f"""
class Body(io.RawIOBase):
    is_first = True
    @property
    def closed(self):
        if Body.is_first:
            Body.is_first = False
            {_INTERRUPT}
        return True
"""
_SWALLOWS = f"""
def Body():
    try:
        {_INTERRUPT}
    except BaseException:
        pass
"""


_IN_THE_IMPORTS = f"""
class Found:
    def find_spec(self, name, *_): name == "s3lake.cli" and {_INTERRUPT}
sys.meta_path.insert(0, Found())
"""
_IN_THE_WORK = f"""
s3lake.cli = sys.modules["s3lake.cli"] = types.SimpleNamespace(main=lambda: {_INTERRUPT})
"""
_AT_EACH_LINE = """
import os, signal, sys, types
processes = ["Spark"]
launch = types.SimpleNamespace(end=lambda: processes and os.write(1, f"ended {{processes.pop()}} ".encode()))
sys.modules["s3lake.land.spark.launch"] = launch
import s3lake
{first}
from s3lake import __main__, interrupts
files = {{__main__.__file__, interrupts.__file__}}

def trace(frame, event, _):
    global left
    if frame.f_code.co_filename not in files:
        return None
    if interrupts.have_arrived() and event in ("call", "line"):
        left -= 1
        if left < 0:
            sys.settrace(None)
            signal.raise_signal(signal.SIGTERM)
    return trace

for left in range(100):
    if not os.fork():
        sys.settrace(trace)
        __main__.main()
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(os.wait()[1]))
"""


_INTERRUPTS_AT_THE_END = """
import atexit, os

@atexit.register
def interrupt():
    command = os.getpid()
    if not os.fork():
        while os.getppid() == command:
            os.kill(command, {number:d})
        os._exit(0)
"""


def run_program(work: str, before: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the main function of the package with a command line that does `work`, and then sleeps."""
    lines = "\n".join(f"    {line}" for line in work.splitlines())
    return run_python(_PROGRAM.format(before=before, work=lines, patience=PATIENCE_S))


def run_python(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_command_with_130_and_without_a_trace(number: signal.Signals) -> None:
    ended = run_program(f"signal.raise_signal({number:d})")
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("body", [_DESTRUCTOR, _CLOSED_BY_C, _SWALLOWS], ids=["destructor", "closed by C", "swallowed"])
def test_an_interrupt_that_was_lost_ends_the_command_all_the_same(body: str) -> None:
    ended = run_program("Body()", body)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("error", ["ImportError('half imported')", "SystemExit(3)", "KeyboardInterrupt"])
def test_an_interrupt_that_became_another_error_ends_the_command_with_130(error: str) -> None:
    ended = run_program(f"try:\n    {_INTERRUPT}\nexcept BaseException:\n    raise {error} from None")
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_interrupt_in_the_exec_of_a_text_ends_the_command_with_130() -> None:
    ended = run_program(f"try:\n    exec('{_INTERRUPT}')\nexcept KeyboardInterrupt:\n    raise SystemExit(130)")
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_during_the_imports_ends_the_command_with_130(number: signal.Signals) -> None:
    found = f"class Found:\n    def find_spec(self, name, *_): name == 's3lake.cli' and signal.raise_signal({number:d})"
    program = f"import signal, sys\n{found}\nsys.meta_path.insert(0, Found())\nfrom s3lake.__main__ import main\nmain()"
    ended = run_python(program)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("first", [_IN_THE_IMPORTS, _IN_THE_WORK], ids=["imports", "work"])
def test_a_second_interrupt_at_any_line_ends_the_command_with_130_after_spark(first: str) -> None:
    ended = run_python(_AT_EACH_LINE.format(first=first))
    assert (ended.stdout.splitlines(), ended.stderr) == (["ended Spark 130"] * 100, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
@pytest.mark.parametrize("place", ["imports", "work"])
def test_an_interrupt_while_python_ends_changes_nothing(place: str, number: signal.Signals) -> None:
    """Raise one in the imports, or in the work, and others from another process until Python has ended."""
    found = f"class Found:\n    def find_spec(self, name, *_): name == 's3lake.cli' and {_INTERRUPT}"
    imports = f"{found}\nsys.meta_path.insert(0, Found())"
    work = f"s3lake.cli = sys.modules['s3lake.cli'] = types.SimpleNamespace(main=lambda: {_INTERRUPT})"
    begin = "import signal, sys, types\nimport s3lake\nfrom s3lake.__main__ import main"
    others = _INTERRUPTS_AT_THE_END.format(number=number)
    ended = run_python("\n".join([begin, others, imports if place == "imports" else work, "main()"]))
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize(
    "work",
    [
        f"try:\n    {_INTERRUPT}\nfinally:\n    time.sleep(2)\n    print('cleaned')",
        f"try:\n    {_INTERRUPT}\nfinally:\n    try:\n        1 / 0\n    except Exception:\n        time.sleep(2)\n"
        "        print('cleaned')",
    ],
    ids=["finally", "an error in finally"],
)
def test_a_cleanup_after_an_interrupt_is_not_disturbed(work: str) -> None:
    ended = run_program(work)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "cleaned\n", "")


def test_interrupts_at_once_do_not_disturb_the_cleanup_of_the_first() -> None:
    ended = run_program(f"try:\n    {_INTERRUPT}\nfinally:\n    for _ in range(9): {_INTERRUPT}\n    print('cleaned')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "cleaned\n", "")


def test_a_later_interrupt_ends_the_cleanup_of_the_first() -> None:
    work = f"try:\n    {_INTERRUPT}\nfinally:\n    time.sleep(1)\n    {_INTERRUPT}\n    print('cleaned')"
    ended = run_program(work)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_command_behind_a_shell_ignores_ctrl_c_and_obeys_sigterm() -> None:
    ended = run_program(
        f"{_INTERRUPT}\nprint('goes on', flush=True)\nsignal.raise_signal(signal.SIGTERM)",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
    )
    assert (ended.returncode, ended.stdout) == (130, "goes on\n")


def test_an_interrupt_that_a_package_logs_and_raises_again_prints_no_trace() -> None:
    closing = f"""
import logging
try:
    {_INTERRUPT}
except BaseException:
    logging.getLogger("pool").error("Exception closing connection", exc_info=True)
    raise
"""
    ended = run_program(closing)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_error_that_a_package_logs_is_still_printed() -> None:
    failing = """
import logging
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("pool").exception("Exception closing connection")
raise SystemExit(0)
"""
    ended = run_program(failing)
    assert ended.returncode == 0
    assert "ZeroDivisionError" in ended.stderr


def test_an_error_in_a_destructor_is_still_printed() -> None:
    ended = run_program("Body()\nraise SystemExit(0)", "class Body:\n    def __del__(self): 1 / 0")
    assert ended.returncode == 0
    assert "ZeroDivisionError" in ended.stderr
