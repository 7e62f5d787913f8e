"""columns.c as it is compiled here, for all that reads by it."""

import runpy
from pathlib import Path

import pytest

from s3lake.source.kafka.columns import CompiledTake

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledTake:
    """columns.c, compiled as a wheel has it."""
    library = tmp_path_factory.mktemp("columns") / "libcolumns.so"
    compile_library = runpy.run_path(str(ROOT / "hatch_build.py"))["compile_library"]
    problem = compile_library(Path("s3lake/source/kafka/columns.c"), library)
    if problem is not None:
        pytest.skip(f"columns.c cannot be compiled here: {problem}")
    return CompiledTake(library)
