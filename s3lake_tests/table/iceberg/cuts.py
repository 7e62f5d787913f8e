"""The end of a process at any request that following a table makes."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from s3lake.table.iceberg import LakeTable


class _Killed(BaseException):
    """The process ends here."""


def cut(table: LakeTable, number: int, lost: bool) -> bool:
    """Follow, and end at a request; False where there are not so many.

    Args:
        table: that follows its index.
        number: of the request, of those that write to S3 or ask the catalog.
        lost: whether the request is sent and its answer lost; else it is never sent.
    """
    from pyiceberg.io.pyarrow import PyArrowFile  # a quarter of a second, in all that collect

    sent = itertools.count()

    def counted(send: Callable[..., Any]) -> Callable[..., Any]:
        def request(*arguments: Any, **named: Any) -> Any:
            mine = next(sent) == number
            if mine and not lost:
                raise _Killed
            answer = send(*arguments, **named)
            if mine:
                raise _Killed
            return answer

        return request

    catalog = type(table._catalog)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PyArrowFile, "create", counted(PyArrowFile.create))
        patch.setattr(catalog, "commit_table", counted(catalog.commit_table))
        patch.setattr(catalog, "load_table", counted(catalog.load_table))
        try:
            table.follow()
        except _Killed:
            return True
    return False
