"""json_check.c passes only what msgspec passes. Most of what msgspec passes is not left to it."""

import json
import logging
import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.records.convert.read import json_check
from s3lake.records.convert.read.json_check import CompiledFind, find_all_rows
from s3lake.records.convert.read.value_checks import EMPTY_JSON, check_each_json, check_json
from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.guarded_memory import PAGE, guarded_page
from s3lake_tests.records.convert.read.conftest import compile_c
from s3lake_tests.records.convert.read.mutations import mutate

MOST_LEVELS = 64
"""json_check.c leaves what is nested more deeply to msgspec."""

PLAIN = [
    b"{}",
    b"[]",
    b" [ ] ",
    b" { } ",
    b"null",
    b"true",
    b"false",
    b'""',
    b"0",
    b"-0",
    b"-0.0",
    b"10",
    b"1e999",
    b"-1E+5",
    b"1e-99999999999999999999",
    b"0.5e3",
    b"123456789012345678901234567890",
    b"9" * 5000,
    b'"\x7f"',
    b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFFFF\\ue000\\ud7ff"',
    b'"\\ud83d\\ude00 \\uDBFF\\uDFFF \\ud800\\udc00"',
    b' \t\r\n{"a" : [1 , {"b":null}, [] ]}\n ',
    '{"größe":"日本 😀"}'.encode(),
    b'{"a":1,"a":2}',
    b'{"":{"":""}}',
    b'[[],{},[{}],{"a":[]}]',
    b"[" * MOST_LEVELS + b"]" * MOST_LEVELS,
    b'{"a":' * MOST_LEVELS + b"1" + b"}" * MOST_LEVELS,
    b'[{"a":' * (MOST_LEVELS // 2) + b"1" + b"}]" * (MOST_LEVELS // 2),
]
REFUSED = [
    b"",
    b" ",
    b"{",
    b'"\xff"',
    b'"\\ud800"',
    b"1 2",
    b"\xef\xbb\xbf{}",
    b"[" * (MOST_LEVELS + 1),
    b"[" * 200_000,
]
ENDS = [
    b'"\\',
    b'"\\u',
    b'"\\u00e',
    b'"\\ud83d',
    b'"\\ud83d\\',
    b'"\\ud83d\\ude0',
    b'"\xe6',
    b'"\xe6\x97',
    b'"\xf0',
    b"tru",
    b"f",
    b"nul",
    b"-",
]
DOCUMENT = '{"a":[1,-2.5e+3,true,null],"größe":"\\u00e9\\ud83d\\ude00 日😀\\n/","plain":"of ten letters","o":{"x":{}}}'


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def list_wrongly_passed(find: CompiledFind, values: Sequence[bytes]) -> list[bytes]:
    """Return the values that C passes and msgspec refuses."""
    doubtful = set(find(binary(*values)))
    return [values[row] for row in check_each_json(binary(*values)) if row not in doubtful]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.builds(
    lambda value, indent, ascii: json.dumps(value, indent=indent, ensure_ascii=ascii).encode(errors="surrogatepass"),
    JSON,
    st.sampled_from([None, 1]),
    st.booleans(),
)


class TestPassed:
    @pytest.mark.parametrize("value", PLAIN)
    def test_ordinary_json_is_passed_without_msgspec(self, compiled_find: CompiledFind, value: bytes) -> None:
        assert check_each_json(binary(value)) == {}
        assert list(compiled_find(binary(value))) == []

    @given(text=TEXTS)
    def test_json_of_python_is_passed_if_msgspec_passes_it(self, compiled_find: CompiledFind, text: bytes) -> None:
        assert list(compiled_find(binary(text))) == list(check_each_json(binary(text)))

    @pytest.mark.parametrize("opening", [b"[", b'{"a":'])
    def test_json_is_left_to_msgspec_when_it_is_nested_deeply(
        self, compiled_find: CompiledFind, opening: bytes
    ) -> None:
        closing = b"]" if opening == b"[" else b"}"
        value = opening * (MOST_LEVELS + 1) + b"1" + closing * (MOST_LEVELS + 1)
        assert list(compiled_find(binary(b"1", value))) == [1]
        assert check_each_json(binary(value)) == {}


class TestNothingElseIsPassed:
    @settings(max_examples=40 * EXAMPLES)
    @given(text=TEXTS, seed=st.integers(0, 2**32))
    def test_c_passes_no_mutated_value_that_msgspec_refuses(
        self, compiled_find: CompiledFind, text: bytes, seed: int
    ) -> None:
        random_ = random.Random(seed)
        assert list_wrongly_passed(compiled_find, [mutate(random_, text) for _ in range(100)]) == []

    @pytest.mark.slow("another 100,000 mutated values")
    @settings(max_examples=500 * EXAMPLES)
    @given(text=TEXTS, seed=st.integers(0, 2**32))
    def test_c_passes_none_of_100_000_mutated_values_that_msgspec_refuses(
        self, compiled_find: CompiledFind, text: bytes, seed: int
    ) -> None:
        random_ = random.Random(seed)
        assert list_wrongly_passed(compiled_find, [mutate(random_, text) for _ in range(200)]) == []

    def test_c_passes_no_refused_document_with_one_other_byte(self, compiled_find: CompiledFind) -> None:
        text = DOCUMENT.encode()
        changed = [
            text[:at] + bytes([byte]) + text[at + left_out :]
            for at in range(len(text))
            for byte in range(256)
            for left_out in (0, 1)
        ]
        assert list_wrongly_passed(compiled_find, changed) == []

    def test_c_passes_no_part_of_a_document_that_msgspec_refuses(self, compiled_find: CompiledFind) -> None:
        text = DOCUMENT.encode()
        places = range(len(text) + 1)
        assert list_wrongly_passed(compiled_find, [text[:at] for at in places]) == []
        assert list_wrongly_passed(compiled_find, [text[at:] for at in places]) == []
        assert list_wrongly_passed(compiled_find, [part for at in places for part in (text[:at], text[at:])]) == []

    @pytest.mark.parametrize("before", [b"", b"a", b"seven b", "é".encode()])
    def test_c_passes_no_bytes_in_a_string_that_are_not_utf_8(self, compiled_find: CompiledFind, before: bytes) -> None:
        edges = (0x20, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xFF)
        parts = [bytes([first]) + bytes(rest) for first in range(0x80, 256) for rest in product(edges, repeat=2)]
        parts += [bytes([first, *rest]) for first in range(0xE0, 0xF8) for rest in product(edges, repeat=3)]
        assert list_wrongly_passed(compiled_find, [b'"' + before + part + b'"' for part in parts]) == []

    def test_c_passes_no_surrogate_that_msgspec_refuses(self, compiled_find: CompiledFind) -> None:
        edges = (0, 0x41, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFFFF)
        units = [rf"\u{unit:04x}" for unit in range(0x10000)]
        pairs = [rf"\u{one:04X}{between}\u{two:04x}" for one, between, two in product(edges, ("", " "), edges)]
        texts = [f'"{text}{end}' for text in (*units, *pairs) for end in ('"', "")]
        assert list_wrongly_passed(compiled_find, [text.encode() for text in texts]) == []

    def test_c_passes_no_number_that_msgspec_refuses(self, compiled_find: CompiledFind) -> None:
        numbers = ["".join(one) for size in range(1, 7) for one in product("-+01.e", repeat=size)]
        assert list_wrongly_passed(compiled_find, [number.encode() for number in numbers]) == []
        assert list_wrongly_passed(compiled_find, [f"[{number}]".encode() for number in numbers]) == []


class TestArrays:
    @pytest.mark.parametrize("type", [pa.binary(), pa.string()])
    def test_rows_of_a_slice_are_its_own(self, compiled_find: CompiledFind, type: pa.DataType) -> None:
        values = pa.array([b"{", b"1", None, b"[", b"2", b"}"] * 5, type)
        for start, end in product(range(12), range(12, 24)):
            rows = [row for row in range(start, end) if row % 6 in (0, 3, 5)]
            assert list(compiled_find(values.slice(start, end - start))) == [row - start for row in rows]

    def test_a_null_is_passed_whatever_bytes_it_has(self, compiled_find: CompiledFind) -> None:
        _, offsets, data = binary(b"{", b"1", b"{").buffers()
        values = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x06"), offsets, data])
        assert values.to_pylist() == [None, b"1", b"{"]
        assert list(compiled_find(values)) == [2]

    @pytest.mark.parametrize(
        "values",
        [binary(), binary(None), pa.nulls(2, pa.binary()), binary(None, b""), binary(b""), binary(b"1").slice(1)],
    )
    def test_an_array_without_a_byte_has_the_verdict_of_msgspec(
        self, compiled_find: CompiledFind, monkeypatch: pytest.MonkeyPatch, values: pa.BinaryArray
    ) -> None:
        monkeypatch.setattr(json_check, "choose_find", lambda: compiled_find)
        expected = {row: EMPTY_JSON for row, value in enumerate(values.to_pylist()) if value is not None}
        assert check_json(values) == expected

    def test_arrays_of_another_layout_are_left_to_msgspec(self, compiled_find: CompiledFind) -> None:
        for type in (pa.large_binary(), pa.large_string()):
            assert list(compiled_find(pa.array([b"1", b"{"], type))) == [0, 1]

    @given(
        values=st.lists(st.none() | st.sampled_from([*PLAIN, b"", b"{", b'"\xff"', b'"\\ud800"', b"1 2", b"[" * 65]))
    )
    def test_reasons_are_those_of_msgspec(self, compiled_find: CompiledFind, values: list[bytes | None]) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(json_check, "choose_find", lambda: compiled_find)
            assert check_json(binary(*values)) == check_each_json(binary(*values))


def test_c_reads_no_byte_behind_a_value(compiled_find: CompiledFind) -> None:
    text = DOCUMENT.encode()
    with guarded_page() as put_at_end:
        for value in [*(text[:end] for end in range(1, len(text) + 1)), *PLAIN, *ENDS]:
            if len(value) <= PAGE:
                assert list(compiled_find(put_at_end(value))) == list(check_each_json(binary(value)))


class TestChoice:
    @pytest.fixture(autouse=True)
    def new_process(self) -> Iterator[None]:
        json_check.choose_find.cache_clear()
        yield
        json_check.choose_find.cache_clear()

    def test_choice_is_logged_once(
        self, compiled_find: CompiledFind, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_check, "CompiledFind", lambda _: compiled_find)
        caplog.set_level(logging.INFO)
        assert [json_check.choose_find(), json_check.choose_find()] == [compiled_find, compiled_find]
        assert caplog.messages == ["JSON is checked by json_check.c"]

    def test_choice_is_msgspec_if_nothing_is_compiled(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_check, "LIBRARY", tmp_path / "libjson_check.so")
        assert [json_check.choose_find(), json_check.choose_find()] == [find_all_rows, find_all_rows]
        (message,) = caplog.messages
        assert message.startswith("JSON is checked value by value, which takes more CPU than json_check.c")
        assert sorted(check_json(binary(b"1", b"{", None))) == [1]

    def test_choice_is_msgspec_if_another_source_was_compiled(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "json_check.c").write_text("int another_function(void) { return 0; }\n")
        compile_c(tmp_path / "json_check.c", tmp_path / "libjson_check.so")
        monkeypatch.setattr(json_check, "LIBRARY", tmp_path / "libjson_check.so")
        assert json_check.choose_find() is find_all_rows
        assert "libjson_check.so was compiled of another json_check.c" in caplog.text
