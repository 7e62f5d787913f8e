"""Compiles columns.c, which reads records of Kafka, when s3lake is built or installed. By hand: python hatch_build.py.

Nobody needs a compiler: without one the wheel is for any platform, and a loop in Python does the same for more CPU.
S3LAKE_WHEEL=manylinux_2_17_x86_64 builds a release for that platform, and fails if it cannot be compiled;
S3LAKE_WHEEL=any builds one without the library. release/README.md has the list.
"""

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    BuildHookInterface = object

ROOT = Path(__file__).parent
SOURCE = Path("s3lake/source/kafka/columns.c")
SHIPPED = (
    "dagster.yaml",
    "constraints.txt",
    "docker/prometheus/alerts.yml",
    "docker/grafana/dashboard.json",
    "docker/compose.yaml",
    "docker/Dockerfile",
)
"""What `s3lake files` writes."""
LIBRARY = SOURCE.with_name("libcolumns.so")


def compile_columns(library: Path) -> str | None:
    """Compile columns.c. Return why that was not possible, None if it was."""
    if platform.python_implementation() != "CPython" or sys.maxsize < 2**32 or os.name != "posix":
        return "only CPython on Linux and macOS with 64 bits reads by it"
    # The path is relative so that the same commit gives the same bytes in any directory.
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-std=c99", "-O2", "-fPIC", "-shared", "-o", str(library), str(SOURCE)]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return f"{shlex.join(command)}: {run.stderr}" if run.returncode else None


class ColumnsHook(BuildHookInterface):  # type: ignore[misc]
    """What hatchling calls before it builds a wheel, or installs one that is editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the library next to its source, and let the wheel have it, and the files of `s3lake files`."""
        wanted = os.environ.get("S3LAKE_WHEEL", "")
        if self.target_name != "wheel":
            return
        if version == "standard":  # an editable one finds them in the clone
            for path in SHIPPED:
                if (ROOT / path).exists():  # an image is built from a part of a clone
                    build_data["force_include"][str(ROOT / path)] = f"s3lake/cli/shipped/{Path(path).name}"
        problem = "S3LAKE_WHEEL=any" if wanted == "any" else compile_columns(ROOT / LIBRARY)
        if problem is None:
            build_data["artifacts"].append(str(LIBRARY))
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{wanted or sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        elif wanted not in ("", "any"):
            raise RuntimeError(f"columns.c cannot be compiled: {problem}")
        else:
            (ROOT / LIBRARY).unlink(missing_ok=True)
            self.app.display_warning(f"columns.c is not compiled, so Kafka is read by Python: {problem}")


if __name__ == "__main__" and (problem := compile_columns(ROOT / LIBRARY)):
    sys.exit(problem)
