"""Verifying shares no code with what it verifies."""

import subprocess
import sys

import pytest


@pytest.mark.long
def test_nothing_of_the_writer_is_imported() -> None:
    script = "import sys, s3lake.verify; print(*(name for name in sys.modules if name.startswith('s3lake.')))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in run.stdout.split()}
    assert "verify" in rooms
    assert not rooms & {"convert", "layout", "encode", "staging", "pipeline", "landing", "spark"}
