"""The second look keeps digests on local disk."""

from pathlib import Path

import pytest

from s3lake.errors import LocalDiskError
from s3lake.verify import digest
from s3lake.verify.detail import Spill


def test_a_full_directory_is_named_also_where_it_is_met_at_the_end(full: Path) -> None:
    value = bytes(digest.SIZE)
    with pytest.raises(LocalDiskError, match=f"have to wait in {full}"), Spill([digest.bucket_of(value)]) as spill:
        spill.add([value] * 100_000, range(100_000))
