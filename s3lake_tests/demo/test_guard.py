"""A guarded command ends with its starter, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from s3lake.demo.process import spawn
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until

GUARD = [sys.executable, "-m", "s3lake.demo.guard"]
IGNORES_TERM = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def has_ended(pid: int) -> bool:
    """Ended, whether or not its new parent has noticed yet (in a container that may be never)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def guarded(*command: str, options: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*GUARD, *options, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("end", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_a_guard_exits_with_the_code_that_a_shell_would_give(end: str, code: int) -> None:
    with guarded("sh", "-c", end) as guard:
        assert guard.wait(PATIENCE_S) == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None], ids=["TERM", "INT", "end of stdin"])
def test_a_signal_and_the_end_of_stdin_end_the_command(number: signal.Signals | None) -> None:
    with guarded("sh", "-c", "echo $$; exec sleep 3600") as guard:
        child = int(first_line(guard))
        if number is None:
            assert guard.stdin is not None
            guard.stdin.close()
        else:
            guard.send_signal(number)
        assert guard.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert has_ended(child)


def test_bytes_on_stdin_do_not_end_it() -> None:
    with guarded("sh", "-c", "echo ready; sleep 0.2; exit 4") as guard:
        assert guard.stdin is not None
        guard.stdin.write("hello")
        guard.stdin.flush()
        assert guard.wait(PATIENCE_S) == 4


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace() -> None:
    with guarded("sh", "-c", IGNORES_TERM, options=("--grace", "0.1")) as guard:
        assert first_line(guard) == "ready"
        guard.send_signal(signal.SIGTERM)
        assert guard.wait(PATIENCE_S) == 128 + signal.SIGKILL


def test_the_children_of_the_command_end_too() -> None:
    with guarded("sh", "-c", "sleep 3600 & echo $!; wait") as guard:
        grandchild = int(first_line(guard))
        guard.send_signal(signal.SIGTERM)
        guard.wait(PATIENCE_S)
    until(lambda: has_ended(grandchild))


def test_the_directory_is_removed_after_the_command(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "file").write_text("x")
    with guarded("sh", "-c", "exit 0", options=("--remove", str(directory))) as guard:
        guard.wait(PATIENCE_S)
    assert not directory.exists()


def test_sigkill_of_the_starter_ends_the_command(tmp_path: Path) -> None:
    script = (
        "import time, pathlib; from s3lake.demo.process import spawn\n"
        f"process = spawn(['sh', '-c', 'echo $$; exec sleep 3600'], pathlib.Path({str(tmp_path / 'log')!r}))\n"
        "while not process.log(): time.sleep(0.02)\n"
        "print(process.log(), flush=True); time.sleep(3600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as starter:
        command = int(first_line(starter))
        starter.kill()
    until(lambda: has_ended(command))


def test_the_terminals_interrupt_does_not_reach_the_command(tmp_path: Path) -> None:
    with spawn(["sleep", "3600"], tmp_path / "log") as process:
        until(lambda: bool(psutil.Process(process.pid).children()))
        (command,) = psutil.Process(process.pid).children()
        assert os.getpgid(process.pid) != os.getpgid(0)
        assert os.getpgid(command.pid) != os.getpgid(0)


def test_the_log_can_be_read_after_its_directory_is_deleted(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    with spawn(["sh", "-c", "echo why; echo it failed >&2; exit 2"], directory / "log", remove=directory) as process:
        until(lambda: not process.running)
        assert not directory.exists()
        assert (process.returncode, process.log()) == (2, "why\nit failed")


def test_stop_waits_until_the_command_has_ended_and_may_be_called_again(tmp_path: Path) -> None:
    process = spawn(["sh", "-c", "echo $$; exec sleep 3600"], tmp_path / "log")
    until(lambda: bool(process.log()))
    command = int(process.log())
    process.stop()
    assert has_ended(command)
    process.stop()
    assert not process.running


def test_the_environment_given_is_the_commands_whole_environment(tmp_path: Path) -> None:
    with spawn(["/usr/bin/env"], tmp_path / "log", {"ONLY": "this"}) as process:
        until(lambda: not process.running)
        assert "ONLY=this" in process.log()
        assert "HOME=" not in process.log()
