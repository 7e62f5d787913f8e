"""Compiles three sources of C when s3lake is built or installed. By hand: python hatch_build.py.

columns.c reads records of Kafka, json_check.c checks JSON, json_columns.c reads it into columns. A compiler is
optional: without one the wheel is for any platform, and Python and Arrow do the same for more CPU.
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
SOURCES = (
    Path("s3lake/source/kafka/columns.c"),
    Path("s3lake/records/convert/read/json_check.c"),
    Path("s3lake/records/convert/read/json_columns.c"),
)
SHIPPED = (
    "dagster.yaml",
    "constraints.txt",
    "docker/prometheus/alerts.yml",
    "docker/grafana/dashboard.json",
    "docker/compose.yaml",
    "docker/Dockerfile",
)
"""What `s3lake files` writes."""
LIBRARIES = {source: source.with_name(f"lib{source.stem}.so") for source in SOURCES}


def compile_library(source: Path, library: Path) -> str | None:
    """Compile one source. Return why that was not possible, None if it was."""
    if platform.python_implementation() != "CPython" or sys.maxsize < 2**32 or os.name != "posix":
        return "only CPython on Linux and macOS with 64 bits uses it"
    # The path is relative so that the same commit gives the same bytes in any directory.
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-std=c99", "-O2", "-fPIC", "-shared", "-o", str(library), str(source)]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return f"{shlex.join(command)}: {run.stderr}" if run.returncode else None


def compile_all() -> str | None:
    """Compile each library next to its source. If one fails, leave none, and return why."""
    for source, library in LIBRARIES.items():
        problem = compile_library(source, ROOT / library)
        if problem is not None:
            remove_all()
            return f"{source.name} cannot be compiled: {problem}"
    return None


def remove_all() -> None:
    """Delete what an earlier build has compiled, so that no wheel gets it."""
    for library in LIBRARIES.values():
        (ROOT / library).unlink(missing_ok=True)


class CompilingHook(BuildHookInterface):  # type: ignore[misc]
    """What hatchling calls before it builds a wheel, or installs one that is editable."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the libraries, and let the wheel have them, and the files of `s3lake files`."""
        wanted = os.environ.get("S3LAKE_WHEEL", "")
        if self.target_name != "wheel":
            return
        if version == "standard":  # an editable one finds them in the clone
            for path in SHIPPED:
                if (ROOT / path).exists():  # an image is built from a part of a clone
                    build_data["force_include"][str(ROOT / path)] = f"s3lake/cli/shipped/{Path(path).name}"
        if wanted == "any":
            remove_all()
            return
        problem = compile_all()
        if problem is None:
            build_data["artifacts"].extend(map(str, LIBRARIES.values()))
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{wanted or sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        elif wanted:
            raise RuntimeError(problem)
        else:
            self.app.display_warning(f"Python does the work of the compiled libraries, for more CPU: {problem}")


if __name__ == "__main__" and (problem := compile_all()):
    sys.exit(problem)
