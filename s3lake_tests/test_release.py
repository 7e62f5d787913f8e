"""What belongs to a release: the parts that it is made of, and a look at their known vulnerabilities."""

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from s3lake.cli.shipped import FILES

ROOT = Path(__file__).parents[1]
BUILDER = ROOT / ".venv-release"
ACTIONLINT = shutil.which("actionlint") or shutil.which("actionlint", path=str(Path.home() / "go" / "bin"))
COMPILED = {
    "s3lake/source/kafka/columns.c": "s3lake/source/kafka/libcolumns.so",
    "s3lake/records/convert/read/json_check.c": "s3lake/records/convert/read/libjson_check.so",
    "s3lake/records/convert/read/json_columns.c": "s3lake/records/convert/read/libjson_columns.so",
}
FINDS = "#!/bin/sh\ncase $* in *known.txt*) echo GHSA-h5c8; exit 1;; esac\n"


@pytest.fixture(scope="module")
def sbom() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "release" / "sbom.py"))


def test_needed_packages_are_those_that_requirements_and_their_extras_lead_to(sbom: dict[str, Any]) -> None:
    names = sbom["needed"](["boto3>=1.36", "fastavro[snappy]>=1.10", "tomli>=2; python_version < '3'"])
    assert {"boto3", "botocore", "s3transfer", "fastavro", "cramjam"} <= names
    assert not {"tomli", "pytest", "zstandard"} & names


def test_components_that_are_not_needed_are_left_out_with_what_depends_on_them(sbom: dict[str, Any]) -> None:
    document = {
        "metadata": {"component": {"bom-ref": "root", "name": "s3lake"}},
        "components": [{"bom-ref": name, "name": name} for name in ("Py_Arrow", "pytest")],
        "dependencies": [{"ref": "root", "dependsOn": ["Py_Arrow", "pytest"]}, {"ref": "Py_Arrow"}, {"ref": "pytest"}],
    }
    found = sbom["kept"](document, {"py-arrow"})
    assert [one["name"] for one in found["components"]] == ["Py_Arrow"]
    assert found["dependencies"] == [
        {"ref": "root", "dependsOn": ["Py_Arrow"]},
        {"ref": "Py_Arrow", "dependsOn": []},
    ]


@pytest.mark.parametrize(
    ("program", "code", "message"),
    [
        ("#!/bin/sh\necho No known vulnerabilities found\n", 2, "not audited"),
        ("#!/bin/sh\necho no route >&2\nexit 1\n", 2, "not audited"),
        (f"{FINDS}echo No known vulnerabilities found\n", 0, "No known vulnerabilities found"),
        (f"{FINDS}echo CVE-1\nexit 1\n", 1, "CVE-1"),
    ],
    ids=["an index without such data", "no network", "nothing is known", "something is known"],
)
def test_an_audit_reports_whether_it_could_be_made(program: str, code: int, message: str, tmp_path: Path) -> None:
    """`pip-audit` reports no finding if its index has no answer."""
    (tmp_path / "pip-audit").write_text(program)
    (tmp_path / "pip-audit").chmod(0o755)
    environment = {**os.environ, "PIP_AUDIT": str(tmp_path / "pip-audit")}
    run = subprocess.run([ROOT / "release" / "audit"], env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, message in run.stdout) == (code, True), run.stdout


@pytest.mark.skipif(
    ACTIONLINT is None, reason="actionlint is missing: go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
)
@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_a_workflow_is_one_that_github_reads(name: str) -> None:
    command = [str(ACTIONLINT), "-no-color", "-oneline", str(ROOT / ".github" / "workflows" / name)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
@pytest.mark.parametrize("source", COMPILED)
def test_a_compiled_library_runs_with_the_oldest_glibc_that_its_wheel_names(tmp_path: Path, source: str) -> None:
    problem = runpy.run_path(str(ROOT / "hatch_build.py"))["compile_library"](Path(source), tmp_path / "library.so")
    if problem is not None:
        pytest.skip(f"{source} cannot be compiled here: {problem}")
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", (tmp_path / "library.so").read_bytes())
    assert [version for version in versions if (int(version[0]), int(version[1])) > (2, 17)] == []


@pytest.mark.slow("builds wheels")
@pytest.mark.long
@pytest.mark.skipif(not (BUILDER / ".installed").exists(), reason="what builds a wheel is missing: make wheel gets it")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(
    ("wanted", "tag", "is_compiled"),
    [("any", "py3-none-any", False), ("manylinux_2_17_x86_64", "py3-none-manylinux_2_17_x86_64", True)],
)
def test_a_wheel_for_a_platform_has_the_compiled_libraries(
    tmp_path: Path, wanted: str, tag: str, is_compiled: bool
) -> None:
    _built(tmp_path / "clone", 0o022, S3LAKE_WHEEL=wanted)
    (wheel,) = (tmp_path / "clone" / "dist").glob("*.whl")
    assert wheel.stem.endswith(tag)
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in COMPILED.values() if name in archive.namelist()]
        shipped = {name: archive.read(f"s3lake/cli/shipped/{name}") for name in FILES}
    assert libraries == (list(COMPILED.values()) if is_compiled else [])
    assert shipped == {name: (ROOT / path).read_bytes() for name, (path, _) in FILES.items()}


@pytest.mark.slow("builds the wheel twice")
@pytest.mark.long
@pytest.mark.skipif(not (BUILDER / ".installed").exists(), reason="what builds a wheel is missing: make wheel gets it")
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_same_commit_gives_the_same_bytes_wherever_and_by_whomever_it_is_built(tmp_path: Path) -> None:
    here = _built(tmp_path / "one", 0o022, TZ="UTC", LC_ALL="C")
    elsewhere = _built(tmp_path / "somewhere" / "else", 0o077, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    assert sorted(Path(name).suffix for name in here) == [".gz", ".whl"]
    assert here == elsewhere


def _built(clone: Path, umask: int, **environment: str) -> dict[str, str]:
    """Digests of what `make wheel` leaves in a clone of its own."""
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True, umask=umask)
    (clone / BUILDER.name).symlink_to(BUILDER)
    command = ["make", f"--old-file={BUILDER.name}/.installed", "wheel"]
    subprocess.run(command, cwd=clone, env={**os.environ, **environment}, check=True, capture_output=True, umask=umask)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (clone / "dist").iterdir()}
