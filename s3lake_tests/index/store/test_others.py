"""Stores that others wrote: each is landed in, or refused with the reason that docs/stores.md gives."""

import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from s3lake.errors import StoreDeniedError
from s3lake.index.store.s3_store import S3Store
from s3lake.index.store.trial import ensure_keeps_objects, try_store
from s3lake_tests.kit.other_s3 import OTHERS, start_other_s3
from s3lake_tests.kit.s3 import connection_to

pytestmark = [pytest.mark.s3, pytest.mark.slow("starts each of the stores that are only tried")]

OVERWRITES = r"a PUT with If-None-Match: \* overwrote an object"
REFUSED = {
    "rclone": OVERWRITES,  # 1.76 honours both conditions
    "s3mock": r"of 4 PUTs with .*, sent at once, [2-4] won",
    "s3proxy": OVERWRITES,
    "s3rver": OVERWRITES,
}
"""What the trial reports of a store; the others pass."""


@pytest.fixture(scope="module", params=sorted(OTHERS))
def tried(request: pytest.FixtureRequest) -> Iterator[tuple[str, S3Store]]:
    """A bucket of each, by the store's name."""
    name = request.param
    if not OTHERS[name].is_there:
        pytest.skip(f"{name} is missing: {OTHERS[name].install}")
    with start_other_s3(name) as server:
        bucket = f"tried-{uuid.uuid4()}"
        server.create_bucket(bucket)
        yield name, S3Store(connection_to(server), bucket)


def test_a_store_takes_landings_exactly_once_or_is_refused_with_the_reason(tried: tuple[str, S3Store]) -> None:
    name, store = tried
    reason = REFUSED.get(name)
    expected: Any = pytest.raises(StoreDeniedError, match=reason) if reason else nullcontext()
    with expected:
        try_store(store, ".indexes/events", "raw/orders")


def test_a_store_does_what_landing_without_exactly_once_needs(tried: tuple[str, S3Store]) -> None:
    _, store = tried
    ensure_keeps_objects(store, "raw/orders")
