"""A library is loaded only if it was compiled of the source that is here now."""

import ctypes
from pathlib import Path

import pytest

from s3lake.records.convert.read.compiled_library import load_compiled_library
from s3lake_tests.records.convert.read.conftest import compile_c

ADD = {"add": (ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)}


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int64), ("second", ctypes.c_int64)]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    source = tmp_path / "adder.c"
    source.write_text("long long add(long long a, long long b) { return a + b; }\nlong long struct_sizes[] = {16};\n")
    compile_c(source, tmp_path / "libadder.so")
    return tmp_path / "libadder.so"


def test_a_function_is_called_with_its_types(library: Path) -> None:
    assert load_compiled_library(library, ADD, [Pair]).add(2**40, 2**41) == 2**40 + 2**41


def test_a_library_without_a_function_is_refused(library: Path) -> None:
    with pytest.raises(OSError, match=r"libadder\.so was compiled of another adder\.c"):
        load_compiled_library(library, {**ADD, "subtract": (None,)})


def test_a_library_with_a_struct_of_another_size_is_refused(library: Path) -> None:
    class Triple(ctypes.Structure):
        _fields_ = [("first", ctypes.c_int64), ("second", ctypes.c_int64), ("third", ctypes.c_int64)]

    with pytest.raises(OSError, match=r"libadder\.so was compiled of another adder\.c"):
        load_compiled_library(library, ADD, [Triple])


def test_a_library_without_sizes_of_structs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adder.c").write_text("long long add(long long a, long long b) { return a + b; }\n")
    compile_c(tmp_path / "adder.c", tmp_path / "libadder.so")
    with pytest.raises(OSError, match=r"libadder\.so was compiled of another adder\.c"):
        load_compiled_library(tmp_path / "libadder.so", ADD, [Pair])


def test_a_library_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"libadder\.so"):
        load_compiled_library(tmp_path / "libadder.so", ADD)
