"""Standard output and standard error that are full, closed, or of another encoding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from s3lake_tests.kit.cost import PATIENCE_S

pytestmark = pytest.mark.long

SCRIPT = Path(sys.executable).parent / "s3lake"
COMMANDS = (("check", "{}"), ("check", "{}", "--json"), ("convert", "{}"), ("--help",), ("--version",))
UNREADABLE = ("check", "missing.yaml")
needs_a_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")


@pytest.fixture
def accented(offline: Path) -> Path:
    """A configuration whose path and values are not ASCII."""
    path = offline.parent / "été" / "s3lake.yaml"
    path.parent.mkdir()
    path.write_text(offline.read_text("utf-8").replace("bucket: lake", "bucket: lake, prefix: été"), "utf-8")
    return path


def run_in_shell(redirection: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", str(SCRIPT), *arguments]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, timeout=PATIENCE_S, check=False
    )


def without_notices(printed: bytes) -> list[str]:
    lines = printed.decode("utf-8", "replace").splitlines()
    return [line for line in lines if not line.startswith("notice: ")]


@needs_a_full_device
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_output_that_is_full_is_reported_in_one_line(command: tuple[str, ...], unbuffered: str, accented: Path) -> None:
    ended = run_in_shell(">/dev/full", *(part.format(accented) for part in command), PYTHONUNBUFFERED=unbuffered)
    assert ended.returncode == 3
    (line,) = without_notices(ended.stderr)
    assert line.startswith("standard output cannot be written to: No space left on device; give it space")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_output_that_is_closed_does_not_fail_a_command(command: tuple[str, ...], accented: Path) -> None:
    ended = run_in_shell(">&-", *(part.format(accented) for part in command))
    assert (ended.returncode, without_notices(ended.stderr)) == (0, [])


@pytest.mark.parametrize("redirection", [">&- 2>&-", pytest.param("2>/dev/full", marks=needs_a_full_device)])
def test_errors_that_cannot_be_printed_do_not_change_the_exit_code(redirection: str) -> None:
    assert run_in_shell(redirection, *UNREADABLE).returncode == 2


@needs_a_full_device
def test_output_and_errors_that_are_full_are_not_reported_as_a_difference(accented: Path) -> None:
    assert run_in_shell(">/dev/full 2>/dev/full", "check", str(accented)).returncode == 3


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_reader_that_has_closed_the_output_is_not_reported_as_a_difference(
    command: tuple[str, ...], accented: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [SCRIPT, *(part.format(accented) for part in command)],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, without_notices(ended.stderr)) == (141, [])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_lines_are_printed_in_the_encoding_of_the_terminal(encoding: str, accented: Path) -> None:
    ended = run_in_shell("", "check", str(accented), PYTHONIOENCODING=encoding)
    assert (ended.returncode, without_notices(ended.stderr)) == (0, [])
    assert "/été/s3lake.yaml:".encode(encoding, "backslashreplace") in ended.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_document_is_utf8_in_every_encoding_of_the_terminal(encoding: str, accented: Path) -> None:
    ended = run_in_shell("", "convert", str(accented), PYTHONIOENCODING=encoding)
    assert (ended.returncode, yaml.safe_load(ended.stdout.decode())["sinks"][0]["prefix"]) == (0, "été")
