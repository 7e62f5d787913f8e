"""Packages of others: modules of docs/examples, installed as packages are, with entry points."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@contextmanager
def install_package(home: Path, module: str, entry_points: str) -> Iterator[None]:
    """Install a package of one module until the block ends."""
    metadata = home / f"{module}-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    shutil.copy(EXAMPLES / f"{module}.py", home)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        importlib.invalidate_caches()
        yield
    sys.modules.pop(module, None)
