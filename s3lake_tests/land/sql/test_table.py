"""Records as rows for SQL, without Spark."""

from typing import Any

import pytest

from s3lake.land import job
from s3lake.land.job import Job
from s3lake.land.sql.table import Tabulate
from s3lake.transform import sql


@pytest.mark.parametrize(("field", "shown"), [("password", "…"), ("other", "'hunter2'")])
def test_what_sparks_error_quotes_is_left_out_if_the_query_names_a_secret(
    monkeypatch: pytest.MonkeyPatch, field: str, shown: str
) -> None:
    def projected(*_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(job, "failure", lambda _: "The value 'hunter2' cannot be cast to BIGINT")
    monkeypatch.setattr(Job, "_projected", projected)
    tabulate = Tabulate("t", "bytes", "json", {}, sql.parse(f"cast({field} AS BIGINT) AS n", None))
    sink: Any = None
    of = Job(sink, "t", sink, lambda: sink)
    assert of._fails(tabulate, {}) == f"The value {shown} cannot be cast to BIGINT"
