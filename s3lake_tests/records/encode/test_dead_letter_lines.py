"""Dead letters: one JSON line with all that is needed to bring a record back."""

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.encode.dead_letter_lines import DeadLetter


def dead_letter(**changes: Any) -> bytes:
    given: dict[str, Any] = {
        "topic": "events",
        "partition": 1,
        "offset": 7,
        "timestamp_ms": 1_270_188_000_000,
        "key": b"k",
        "value": b"{",
        "headers": [{"key": "region", "value": b"eu"}],
        "stage": "convert",
        "message": "Input data was truncated",
    }
    return DeadLetter(**{**given, **changes}).to_line()


def test_a_letter_is_one_line_of_json() -> None:
    assert dead_letter() == (
        b'{"topic":"events","partition":1,"offset":7,"timestamp":1270188000000,"key":"k","value":"{",'
        b'"headers":[{"name":"region","value":"eu"}],"stage":"convert","error":"RecordError",'
        b'"message":"Input data was truncated"}'
    )


def test_a_record_without_headers_has_none() -> None:
    assert json.loads(dead_letter(headers=None))["headers"] == []


def _bytes(text: Any) -> bytes | None:
    if isinstance(text, dict):
        return base64.b64decode(text["base64"])
    return None if text is None else text.encode()


@given(
    st.none() | st.binary(), st.none() | st.binary(), st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary()))
)
def test_every_byte_comes_back(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
    written = dead_letter(key=key, value=value, headers=[{"key": name, "value": data} for name, data in headers])
    assert b"\n" not in written
    found = json.loads(written)
    assert (_bytes(found["key"]), _bytes(found["value"])) == (key, value)
    assert [(one["name"], _bytes(one["value"])) for one in found["headers"]] == headers
