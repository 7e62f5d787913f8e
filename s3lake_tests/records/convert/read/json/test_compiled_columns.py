"""json_columns.c reads only objects that the gate passes, and as Arrow's reader and Python read them."""

import json
import random
import struct
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.records.convert.read.json import compiled_columns, object_columns
from s3lake.records.convert.read.json.compiled_columns import CompiledReader, read_columns
from s3lake.records.convert.read.json.object_blocks import make_block
from s3lake.records.convert.read.value_checks import check_each_json, find_repeated_names
from s3lake.records.schema.columns.arrow_types import to_arrow
from s3lake.records.schema.columns.types import from_document
from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.guarded_memory import guarded_page
from s3lake_tests.records.convert.read.conftest import compile_c
from s3lake_tests.records.convert.read.mutations import mutate

Document = dict[str, Any]

COLUMNS: Document = {
    "i": "int64",
    "d": "double",
    "s": "string",
    "b": "bool",
    "größe": "string",
    "o": {"struct": {"i": "int64", "s": "string", "p": {"struct": {"d": "double", "": "bool"}}}},
}
SCHEMA = to_arrow(from_document(COLUMNS))
PLAIN = [
    b"{}",
    b' {\n"i" : 1 ,\t"b": true } ',
    b'{"o":{"p":{"":false,"d":-0.0},"s":"","i":null},"i":-9223372036854775807}',
    b'{"o":{},"d":12,"i":9223372036854775807}',
    b'{"o":null,"s":null,"b":null,"d":null,"i":null}',
    b'{"o":{"p":null}}',
    '{"größe":"日本 😀","s":"of more than eight bytes"}'.encode(),
    b'{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uFFFF\\ud83d\\ude00\\u0041"}',
    b'{"d":1.5e-7,"s":"a\\nb","i":0}',
    b'{"d":0.1234567890123456789}',
    b'{"d":1e-22}',
    b'{"d":9007199254740991}',
]
IN_DOUBT = [
    b"",
    b"1",
    b"[]",
    b"null",
    b'{"i":1}{"i":2}',
    b'{"i":1',
    b'{"i":1,}',
    b'{"x":1}',
    b'{"i":1,"i":1}',
    b'{"o":{"i":1,"i":2}}',
    b'{"\\u0069":1}',
    b'{"i":1.0}',
    b'{"i":1e3}',
    b'{"i":01}',
    b'{"i":"1"}',
    b'{"i":9223372036854775808}',
    b'{"i":12345678901234567890}',
    b'{"d":9007199254740993}',
    b'{"d":1e999}',
    b'{"d":NaN}',
    b'{"d":1.}',
    b'{"d":.5}',
    b'{"d":+1}',
    b'{"b":1}',
    b'{"b":truex}',
    b'{"s":1}',
    b'{"s":"\\u0000"}',
    b'{"s":"\\ud800"}',
    b'{"s":"\xff"}',
    b'{"s":"a\nb"}',
    b'{"o":[]}',
    b'{"o":{"x":1}}',
]

DOUBLES = st.floats(-(2.0**53) + 1, 2.0**53 - 1)
INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


INNER = st.fixed_dictionaries({}, optional={"d": st.none() | DOUBLES, "": st.none() | st.booleans()})
MIDDLE = st.fixed_dictionaries({}, optional={"i": st.none() | INTEGERS, "s": st.none() | TEXT, "p": st.none() | INNER})
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | INTEGERS,
        "d": st.none() | DOUBLES,
        "s": st.none() | TEXT,
        "b": st.none() | st.booleans(),
        "größe": st.none() | TEXT,
        "o": st.none() | MIDDLE,
    },
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """JSON of an object, with its members in any order."""
    members = draw(st.permutations(list(draw(OBJECTS).items())))
    indent = draw(st.sampled_from([None, 1]))
    is_ascii = "größe" not in dict(members) and draw(st.booleans())  # C leaves names with escapes to Arrow
    return json.dumps(dict(members), indent=indent, ensure_ascii=is_ascii).encode()


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> CompiledReader:
    """json_columns.c, compiled as a wheel has it."""
    library = tmp_path_factory.mktemp("json_columns") / "libjson_columns.so"
    compile_c(Path("s3lake/records/convert/read/json_columns.c"), library)
    return CompiledReader(library)


def binary(*values: bytes) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def read(reader: CompiledReader, *values: bytes, schema: pa.Schema = SCHEMA) -> list[Any] | None:
    batch = read_columns(reader, binary(*values), schema)
    if batch is None:
        return None
    batch.validate(full=True)
    rows: list[Any] = batch.to_pylist()
    return rows


def complete(value: Any, columns: Document = COLUMNS) -> Any:
    """Return what a row of the columns has for an object that Python has read."""
    return {
        name: complete(value.get(name), type["struct"])
        if isinstance(type, dict) and value.get(name) is not None
        else float(value[name])
        if type == "double" and value.get(name) is not None
        else value.get(name)
        for name, type in columns.items()
    }


def exact(rows: Any) -> str:
    """Return a text that differs where rows differ, also in the sign of zero and the type of a number."""
    return repr(rows)


class TestRead:
    @pytest.mark.parametrize("value", PLAIN)
    def test_an_object_of_the_columns_is_read(self, reader: CompiledReader, value: bytes) -> None:
        assert exact(read(reader, value)) == exact([complete(json.loads(value))])

    @given(values=st.lists(texts(), min_size=1, max_size=20))
    def test_objects_are_read_as_python_reads_them(self, reader: CompiledReader, values: list[bytes]) -> None:
        assert exact(read(reader, *values)) == exact([complete(json.loads(value)) for value in values])

    @given(values=st.lists(texts(), min_size=1, max_size=20))
    def test_a_batch_is_the_one_of_arrow(self, reader: CompiledReader, values: list[bytes]) -> None:
        block = make_block(from_document(COLUMNS))
        assert block is not None
        expected = block.read(binary(*values), "error")
        batch = read_columns(reader, binary(*values), SCHEMA)
        assert expected is None or (batch is not None and batch.equals(expected, check_metadata=True))

    @given(number=DOUBLES, form=st.sampled_from(["r", ".17g", ".17e", "f", ".25f", ".3e"]))
    def test_a_double_has_the_bits_that_python_reads(self, reader: CompiledReader, number: float, form: str) -> None:
        text = repr(number) if form == "r" else format(number, form)
        rows = read(reader, b'{"d":%b}' % text.encode())
        if rows is not None:
            assert struct.pack("<d", rows[0]["d"]) == struct.pack("<d", float(text))

    def test_most_doubles_are_read(self, reader: CompiledReader) -> None:
        random_ = random.Random(5)
        numbers = [random_.uniform(-1, 1) * 10 ** random_.randint(-15, 15) for _ in range(5000)]
        numbers += [round(random_.uniform(-1000, 1000), 2) for _ in range(5000)]
        rows = read(reader, *(b'{"d":%b}' % repr(number).encode() for number in numbers))
        assert rows is not None
        assert [row["d"] for row in rows] == numbers

    @pytest.mark.parametrize("power", [*range(-40, 25), 99, -99])
    def test_powers_of_ten_are_read_right_or_not_at_all(self, reader: CompiledReader, power: int) -> None:
        for digits, zeros in product(("1", "9007199254740993", "12345678901234567890"), (0, 1, 30, 70)):
            text = f"0.{'0' * zeros}{digits}e{power}"
            rows = read(reader, b'{"d":%b}' % text.encode())
            assert rows is None or rows[0]["d"] == float(text)

    def test_members_that_are_always_null_may_be_there(self, reader: CompiledReader) -> None:
        values = binary(b'{"x":null,"i":1}', b'{"i":2}')
        batch = read_columns(reader, values, SCHEMA, {"x", "y"})
        assert batch is not None
        assert batch.schema == SCHEMA
        assert batch.column("i").to_pylist() == [1, 2]
        assert read_columns(reader, binary(b'{"x":1}'), SCHEMA, {"x", "y"}) is None

    def test_rows_of_a_slice_are_its_own(self, reader: CompiledReader) -> None:
        values = binary(*(b'{"i":%d,"s":"%d"}' % (row, row) for row in range(30)))
        for start, end in product(range(10), range(11, 30, 4)):
            batch = read_columns(reader, values.slice(start, end - start), SCHEMA)
            assert batch is not None
            assert batch.column("i").to_pylist() == list(range(start, end))
            assert batch.column("s").to_pylist() == [str(row) for row in range(start, end)]

    def test_columns_of_other_types_are_left_to_arrow(self, reader: CompiledReader) -> None:
        for type in (pa.list_(pa.int64()), pa.int32(), pa.timestamp("ms"), pa.map_(pa.string(), pa.int64())):
            assert read_columns(reader, binary(b"{}"), pa.schema([("a", type)])) is None

    def test_an_array_without_a_byte_is_left_to_others(self, reader: CompiledReader) -> None:
        for values in (binary(), binary(b""), pa.array([b"{}"], pa.large_binary()), pa.nulls(1, pa.binary())):
            assert read_columns(reader, values, SCHEMA) is None


class TestNothingElseIsRead:
    @pytest.mark.parametrize("value", IN_DOUBT)
    def test_a_batch_is_left_to_others_when_one_value_is_in_doubt(self, reader: CompiledReader, value: bytes) -> None:
        assert read(reader, b'{"i":1}', value, b'{"i":2}') is None

    @settings(max_examples=10 * EXAMPLES)
    @given(text=texts(), seed=st.integers(0, 2**32))
    def test_c_reads_no_mutated_object_in_another_way_than_python(
        self, reader: CompiledReader, text: bytes, seed: int
    ) -> None:
        random_ = random.Random(seed)
        for value in [mutate(random_, random_.choice([text, *PLAIN])) for _ in range(30)]:
            rows = read(reader, value)
            if rows is not None:
                assert check_each_json(binary(value)) == {}
                assert find_repeated_names(binary(value)) == {}
                assert exact(rows) == exact([complete(json.loads(value))])

    def test_c_reads_no_refused_object_with_one_other_byte(self, reader: CompiledReader) -> None:
        text = b'{"i":-1,"d":2.5e+3,"s":"\\u00e9\\ud83d\\ude00 \xc3\xa9\\n","b":true,"o":{"p":null}}'
        changed = [
            text[:at] + bytes([byte]) + text[at + left_out :]
            for at in range(len(text))
            for byte in b'\0\n\r\t !"+,-./019:AEZ[\\]_aenu{}\x7f\x80\xbf\xc3\xed\xf0\xff'
            for left_out in (0, 1)
        ]
        refused = check_each_json(binary(*changed)) | find_repeated_names(binary(*changed))
        assert [changed[row] for row in refused if read(reader, changed[row]) is not None] == []

    def test_c_reads_no_part_of_an_object(self, reader: CompiledReader) -> None:
        for value in PLAIN:
            whole = value.rstrip()
            assert [end for end in range(len(whole)) if read(reader, whole[:end]) is not None] == []


def test_c_reads_no_byte_behind_a_value(reader: CompiledReader) -> None:
    with guarded_page() as put_at_end:
        for value in [*(text[:end] for text in PLAIN for end in range(1, len(text) + 1)), *filter(None, IN_DOUBT)]:
            batch = read_columns(reader, put_at_end(value), SCHEMA)
            assert (None if batch is None else batch.to_pylist()) == read(reader, value)


@given(values=st.lists(texts() | st.sampled_from([*PLAIN, *IN_DOUBT]), min_size=1, max_size=8))
def test_a_table_is_the_same_with_and_without_c(reader: CompiledReader, values: list[bytes]) -> None:
    tables = []
    for chosen in (reader, None):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(compiled_columns, "load_reader", lambda chosen=chosen: chosen)
            tables.append(object_columns.read_objects(binary(*values), from_document(COLUMNS), checked=False))
    with_c, without = tables
    assert exact(with_c.batch and with_c.batch.to_pylist()) == exact(without.batch and without.batch.to_pylist())
    assert with_c._replace(batch=None) == without._replace(batch=None)
    assert (with_c.batch is None) == (without.batch is None)
    assert with_c.batch is None or with_c.batch.schema == without.batch.schema


class TestChoice:
    @pytest.fixture(autouse=True)
    def new_process(self) -> Iterator[None]:
        compiled_columns.load_reader.cache_clear()
        yield
        compiled_columns.load_reader.cache_clear()

    def test_arrow_reads_and_a_warning_is_logged_once_if_nothing_is_compiled(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compiled_columns, "LIBRARY", tmp_path / "libjson_columns.so")
        assert [compiled_columns.load_reader(), compiled_columns.load_reader()] == [None, None]
        (message,) = caplog.messages
        assert message.startswith("JSON is read into columns by Arrow, which takes more CPU than json_columns.c")
        table = object_columns.read_objects(binary(b'{"i":1}'), from_document({"i": "int64"}))
        assert table.batch.to_pylist() == [{"i": 1}]  # type: ignore[union-attr]

    @pytest.mark.parametrize("source", ["int x;", "long struct_sizes[] = {8}; int read_columns, copy_texts;"])
    def test_arrow_reads_if_another_source_was_compiled(
        self, source: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "json_columns.c").write_text(f"{source}\n")
        compile_c(tmp_path / "json_columns.c", tmp_path / "libjson_columns.so")
        monkeypatch.setattr(compiled_columns, "LIBRARY", tmp_path / "libjson_columns.so")
        assert compiled_columns.load_reader() is None
        assert "libjson_columns.so was compiled of another json_columns.c" in caplog.text
