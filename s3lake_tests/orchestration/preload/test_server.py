from importlib.util import find_spec

import pytest

from s3lake.orchestration.preload.server import IMPORTED


@pytest.mark.parametrize("module", IMPORTED)
def test_module_that_is_imported_before_runs_exists(module: str) -> None:
    assert find_spec(module) is not None
