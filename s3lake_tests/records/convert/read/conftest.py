"""json_check.c as it is compiled here."""

import runpy
from pathlib import Path

import pytest

from s3lake.records.convert.read.json_check import CompiledFind

ROOT = Path(__file__).parents[4]


def compile_c(source: Path, library: Path) -> None:
    """Compile as a wheel is, or skip the test."""
    problem = runpy.run_path(str(ROOT / "hatch_build.py"))["compile_library"](source, library)
    if problem is not None:
        pytest.skip(f"{source.name} cannot be compiled here: {problem}")


@pytest.fixture(scope="session")
def compiled_find(tmp_path_factory: pytest.TempPathFactory) -> CompiledFind:
    """json_check.c, compiled as a wheel has it."""
    library = tmp_path_factory.mktemp("json_check") / "libjson_check.so"
    compile_c(Path("s3lake/records/convert/read/json_check.c"), library)
    return CompiledFind(library)
