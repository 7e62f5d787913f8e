"""CSV: RFC 4180 rows whose nulls are not their empty texts, as another reader sees them."""

import base64
import datetime
import decimal
import io
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as pyarrow_csv

from s3lake.records.encode import FileFormat, prepare_rows
from s3lake_tests.kit.codecs import TEXT_CODECS, decompress
from s3lake_tests.records.encode.tables import FLAT, batches
from s3lake_tests.records.encode.written_files import LINES, VERBS, batch, written

CSV = FileFormat("csv", "none", framing=LINES)
PLAIN = FileFormat("csv", "none", header=False, framing=LINES)


def cells(array: pa.Array) -> list[str]:
    """The texts of a column, which a second column keeps from being alone."""
    lines = written(PLAIN, [pa.RecordBatch.from_arrays([array, array], names=["a", "b"])]).decode().split("\n")[:-1]
    halves = [(line[: len(line) // 2], line[len(line) // 2 + 1 :]) for line in lines]
    assert all(one == other for one, other in halves)
    return [one for one, _ in halves]


def test_a_file_is_a_header_and_rows_that_end_in_a_line_feed() -> None:
    payload = batch(id=[1, None], name=["Ann", None], ok=[True, False])
    assert written(CSV, [payload]) == b'id,name,ok\n1,"Ann",true\n,,false\n'


@pytest.mark.parametrize(
    ("form", "file"),
    [
        (CSV, b"a,b\n1,2\n3,4\n"),
        (PLAIN, b"1,2\n3,4\n"),
        (FileFormat("csv", "none", framing=("", "\n", "")), b"a,b\n1,2\n3,4"),
    ],
)
def test_a_file_has_its_header_once_or_not_at_all(form: FileFormat, file: bytes) -> None:
    assert written(form, [batch(a=[1], b=[2]), batch(a=[3], b=[4])]) == file


def test_names_are_quoted_where_they_have_to_be() -> None:
    payload = pa.RecordBatch.from_arrays([pa.array([1])] * 5, names=["a,b", 'c"d', "e\nf", "", "é g"])
    assert written(CSV, [payload]).decode().split("\n1,")[0] == '"a,b","c""d","e\nf","",é g'


def test_finished_lines_are_written_as_they_are() -> None:
    lines = pa.array([b'QQ==,"', b""], pa.binary())
    assert written(CSV, [lines]) == b'QQ==,"\n\n'


def test_batches_can_be_prepared_before_they_are_split() -> None:
    payload = batch(a=[1, 2, 3], b=["x", "y", None])
    ready = prepare_rows(CSV, payload)
    assert written(CSV, [ready.slice(0, 1), ready.take(pa.array([1])), ready.slice(2)]) == written(CSV, [payload])
    assert prepare_rows(CSV, ready) is ready


def test_the_null_of_a_lone_column_is_neither_an_empty_line_nor_an_empty_text() -> None:
    assert written(CSV, [batch(a=[1, None, 2])]) == b'a\n1\n""\n2\n'
    assert written(CSV, [batch(a=["x", None, ""])]) == b'a\n"x"\n\n""\n'


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, False, None]), ["true", "false", ""]),
        (pa.array([-(2**31), None], pa.int32()), ["-2147483648", ""]),
        (pa.array([2**63 - 1]), ["9223372036854775807"]),
        (pa.array([1.0, -0.5, 1e20, 1e-7, 0.1, None]), ["1", "-0.5", "1e+20", "1e-7", "0.1", ""]),
        (pa.array([float("inf"), float("-inf"), float("nan")]), ["inf", "-inf", "nan"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array(["x", "", None, 'a "b"', "c,d", " "]), ['"x"', '""', "", '"a ""b"""', '"c,d"', '" "']),
        (pa.array([b"\xff\xfe\xfd", b"\xff\xfe", b"\xff", b"", None]), ['"//79"', '"//4="', '"/w=="', '""', ""]),
        (pa.array([datetime.date(2026, 11, 20), None]), ["2026-11-20", ""]),
        (pa.array([datetime.time(8, 5, 0, 7000), None], pa.time32("ms")), ["08:05:00.007", ""]),
        (pa.array([1_795_162_500_123, -1, None], pa.timestamp("ms", "UTC")), None),
        (pa.array([uuid.UUID(int=10), None], pa.uuid()), ["00000000-0000-0000-0000-00000000000a", ""]),
        (pa.array([decimal.Decimal("-12.50"), decimal.Decimal("0.05"), None]), ["-12.50", "0.05", ""]),
        (pa.array([decimal.Decimal("0.00000001")], pa.decimal128(20, 8)), ["0.00000001"]),
        (pa.array([10**38 - 1, -7], pa.decimal128(38, 0)), ["9" * 38, "-7"]),
    ],
)
def test_values_have_one_spelling(array: pa.Array, expected: list[str] | None) -> None:
    assert cells(array) == (expected or ["2026-11-20T08:15:00.123Z", "1969-12-31T23:59:59.999Z", ""])


def test_an_instant_without_a_calendars_text_is_its_number() -> None:
    assert cells(pa.array([2**63 - 1, 0], pa.timestamp("ms", "UTC"))) == [str(2**63 - 1), "1970-01-01T00:00:00.000Z"]
    assert cells(pa.array([-(2**31), 0], pa.date32())) == [str(-(2**31)), "1970-01-01"]


@given(st.lists(st.none() | st.binary(max_size=9), min_size=1), st.integers(0, 3))
def test_base64_of_a_column_is_base64_of_each_value(values: list[bytes | None], start: int) -> None:
    found = cells(pa.array(values, pa.binary()).slice(start))
    assert found == ["" if value is None else f'"{base64.b64encode(value).decode()}"' for value in values[start:]]


def expected_rows(payloads: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Rows as a reader sees them that knows neither binary nor UUIDs."""
    rows = [row for payload in payloads for row in payload.to_pylist()]
    formats = {"data": lambda data: base64.b64encode(data).decode(), "id": str}
    return [
        {name: formats[name](one) if name in formats and one is not None else one for name, one in row.items()}
        for row in rows
    ]


def read_by_pyarrow(data: bytes, schema: pa.Schema) -> list[dict[str, Any]]:
    types = {field.name: pa.string() if field.name in ("data", "id") else field.type for field in schema}
    return pyarrow_csv.read_csv(
        io.BytesIO(data),
        parse_options=pyarrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow_csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    ).to_pylist()


@given(batches(FLAT), st.lists(st.sampled_from(VERBS), max_size=3))
def test_every_row_comes_back(payloads: list[pa.RecordBatch], verbs: list[str]) -> None:
    payloads = [payload.add_column(0, "row", pa.array(range(len(payload)))) for payload in payloads]
    expected = expected_rows(payloads)
    for codec in TEXT_CODECS:
        data = decompress(codec, written(FileFormat("csv", codec, framing=LINES), payloads, verbs))
        assert read_by_pyarrow(data, payloads[0].schema) == expected, codec
