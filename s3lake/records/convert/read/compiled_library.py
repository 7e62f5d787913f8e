"""Loads the libraries of C that `hatch_build.py` compiles, if they were compiled of the sources that are here now."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def load_compiled_library(
    path: Path, functions: Mapping[str, tuple[Any, ...]], structs: Sequence[type[ctypes.Structure]] = ()
) -> ctypes.CDLL:
    """Load a library with its functions.

    Args:
        path: the path of the library.
        functions: the names of its functions, each with the types of its result and of its arguments.
        structs: the structs that it has too, in the order in which its `struct_sizes` has their sizes.

    Raises:
        OSError: it is missing, or not compiled of this source for this platform.
    """
    library = ctypes.CDLL(str(path))
    try:
        for name, (result, *arguments) in functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        sizes = (ctypes.c_int64 * len(structs)).in_dll(library, "struct_sizes") if structs else ()
        is_ours = list(sizes) == [ctypes.sizeof(struct) for struct in structs]
    except (AttributeError, ValueError):
        is_ours = False
    if not is_ours:
        raise OSError(f"{path.name} was compiled of another {path.stem.removeprefix('lib')}.c")
    return library
