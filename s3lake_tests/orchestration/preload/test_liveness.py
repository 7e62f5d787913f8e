import dataclasses
import os
import signal
import subprocess
import sys

import pytest

from s3lake.orchestration.preload.liveness import RunProcess

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are copied on Linux only")


def test_process_is_read_as_it_was_written() -> None:
    process = RunProcess.find(os.getpid())
    assert RunProcess.read(process.write()) == process


def test_the_own_process_is_alive() -> None:
    assert RunProcess.find(os.getpid()).is_alive()


def test_earlier_process_of_the_same_number_is_not_alive() -> None:
    assert not dataclasses.replace(RunProcess.find(os.getpid()), began=1).is_alive()


def test_process_of_another_machine_is_not_here_and_gets_no_signal() -> None:
    elsewhere = dataclasses.replace(RunProcess.find(os.getpid()), host="elsewhere")
    assert not elsewhere.is_here()
    assert not elsewhere.send_signal(signal.SIGKILL)


@pytest.mark.long
def test_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = RunProcess.find(child.pid)
        assert process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not process.is_alive()
