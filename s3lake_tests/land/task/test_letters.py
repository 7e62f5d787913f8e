"""Dead letters of a task: how many are held until they are an object."""

import pytest

from s3lake.land.given import Record, batch
from s3lake.land.task.letters import Letters
from s3lake.store.memory import MemoryStore
from s3lake_tests.land.task.test_staging import bodies, staging


def objects(most: int) -> list[bytes]:
    """What two records that are refused one after the other become where so many bytes are held at most."""
    store = MemoryStore()
    files = staging(store)
    letters = Letters(files, None, None, most)
    for offset in (0, 1):
        letters.add("t", 0, batch([Record("t", 0, offset, 0, None, b"{", ())]), "convert", {0: "not JSON"})
    letters.finish()
    return list(bodies(store, files.finish()).values())


@pytest.mark.parametrize(("more", "lines"), [(0, [1, 1]), (1, [2])])
def test_they_are_an_object_once_there_are_as_many_bytes_as_may_be_held(more: int, lines: list[int]) -> None:
    both = objects(10_000)[0]
    (one, _) = both.splitlines()
    assert [body.count(b"\n") for body in objects(len(one) + more)] == lines
