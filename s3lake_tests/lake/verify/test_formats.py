"""Every format and codec: what an independent writer made of Kafka's records is clean, and any change is found."""

import json
from typing import Any

import msgspec
import pytest

from s3lake_tests.kit.codecs import TEXT_CODECS, compress
from s3lake_tests.lake.verify.world import IN_TIME, VerifiedTopic, avro, difference_types, optional, texts

VALUES = [b'{"n":%d,"t":"x"}' % n for n in range(5)]


def landed(
    values: list[bytes | None], body: bytes, *, columns: dict[str, Any] | None = None, **sink: Any
) -> VerifiedTopic:
    world = VerifiedTopic(**sink)
    for value in values:
        world.record(value)
    world.landed_as(body, columns=columns)
    return world


def detects_a_change(world: VerifiedTopic, offset: int = 0, other: bytes = b'{"n":99,"t":"x"}') -> bool:
    """Verify, change one record, verify again; return whether only the second report has a difference."""
    clean = world.verify()
    assert clean.clean, clean.differences
    log = world.log.records[0]
    before = log[offset]
    log[offset] = (IN_TIME, other)
    found = world.verify().clean
    log[offset] = before
    return not found


@pytest.mark.parametrize("codec", TEXT_CODECS)
@pytest.mark.parametrize(
    ("format", "body"),
    [
        ("json", b"".join(value + b"\n" for value in VALUES)),
        ("json_array", b"[\n" + b",\n".join(VALUES) + b"\n]"),
        ("text", b"".join(value + b"\n" for value in VALUES)),
        ("csv", b"n,t\n" + b"".join(b"%d,x\n" % n for n in range(5))),
    ],
)
def test_verify_finds_a_changed_value_in_every_text_format_and_codec(format: str, body: bytes, codec: str) -> None:
    columns = {"n": "int64", "t": "string"} if format == "csv" else None
    assert detects_a_change(landed(list(VALUES), body, columns=columns, format={"type": format, "codec": codec}), 2)


FRAMINGS = [
    pytest.param("json", ("", "\n", ""), VALUES, id="no newline at the end"),
    pytest.param("json_array", ("[", ",", "]"), VALUES, id="no newline at all"),
    pytest.param("json_array", ("[", ",", "]"), [b' {"a":",[]\\"," } ', b'"],["', b" 1", b"null"], id="hostile text"),
    pytest.param("json", ("", "\r\n", "\r\n"), VALUES, id="carriage returns"),
    pytest.param("json", ("begin\n", "\n--\n", "\nend"), VALUES, id="words"),
    pytest.param("text", ("<", "|", ">"), [b"a|b", b"", b"|", b"c"], id="text with its separator inside"),
    pytest.param("bytes", ("", "\n", "\n"), [b"a\nb", b"\xff\n", b"", b"c"], id="bytes, each ended"),
    pytest.param("bytes", ("", "", ""), [b"a", b"\xff\n", b"", b"c"], id="bytes with nothing between"),
    pytest.param("bytes", ("", "aa", ""), [b"xa", b"ax", b"y"], id="bytes that touch the separator"),
]


@pytest.mark.parametrize(("format", "framing", "values"), FRAMINGS)
def test_verify_finds_a_changed_value_and_a_changed_framing(
    format: str, framing: tuple[str, str, str], values: list[bytes]
) -> None:
    opening, between, closing = (part.encode() for part in framing)
    body = opening + between.join(values) + closing
    form = {"type": format, "framing": dict(zip(("opening", "between", "closing"), framing, strict=True))}
    world = landed(list(values), body, format=form)
    assert detects_a_change(world, len(values) - 1, b"7")
    (file,) = world.manifests["c1"].files
    for wrong in (body[:-1], body + b"7", b"7" + body):
        world.overwrite(file, wrong)
        assert not world.verify().clean


def test_framed_bytes_in_the_wrong_order_are_found() -> None:
    world = landed([b"a\nb", b"c\nd"], b"a\nd\nc\nb\n", format={"type": "bytes", "framing": {}})
    assert "is not what records 0 to 1 make together" in texts(world.verify(), "object")[0]


@pytest.mark.parametrize("between", ["", "\n"])
def test_framed_bytes_of_files_that_overlap_are_counted(between: str) -> None:
    world = VerifiedTopic(format={"type": "bytes", "framing": {"between": between, "closing": between}})
    for value in (b"a", b"b", b"c", b"d"):
        world.record(value)
    world.landed_as(b"")
    first, second = (between.join((*pair, "")).encode() for pair in ("ac", "bd"))
    files = [world.file("c1", first, 0, 2, records=2, name="x"), world.file("c1", second, 1, 3, records=2, name="y")]
    world.change("c1", files=tuple(files))
    report = world.verify()
    assert (report.clean, report.compared, report.not_compared) == (True, 0, 4)
    assert "overlap" in report.counted_reasons[0]


@pytest.mark.parametrize("codec", TEXT_CODECS)
def test_bytes_are_one_record_an_object(codec: str) -> None:
    world = VerifiedTopic(format={"type": "bytes", "codec": codec}, converter={"value": "bytes"}, nulls="write")
    values = [b"\xff\n\x00", b"", None, b"a,b"]
    for value in values:
        world.record(value)
    world.landed_as(b"")
    files = [
        world.file("c1", value or b"", offset, offset, records=1, name=str(offset))
        for offset, value in enumerate(values)
    ]
    world.change("c1", files=tuple(files))
    assert detects_a_change(world, 3, b"a,c")
    empty = files[1]
    world.overwrite(empty, b"")
    world.change("c1", files=(files[0], msgspec.structs.replace(empty, bytes=0), *files[2:]))
    assert world.verify().clean


@pytest.mark.parametrize(
    ("value", "row"),
    [
        pytest.param({"name": ""}, ",", id="an empty string is not null"),
        pytest.param({}, ',""', id="null is not an empty string"),
        pytest.param({"n": 1}, "1.0,", id="an integer has no fraction"),
        pytest.param({"name": "a"}, ",a,", id="a field too many"),
        pytest.param({"name": "a"}, ',"a', id="a quote that is not closed"),
        pytest.param({"name": "a"}, ',b"a"', id="a quote inside"),
    ],
)
def test_verify_finds_csv_in_which_null_and_an_empty_string_are_confused(value: Any, row: str) -> None:
    body = f"n,name\n{row}\n".encode()
    columns = {"n": "int64", "name": "string"}
    assert not landed([json.dumps(value).encode()], body, columns=columns, format={"type": "csv"}).verify().clean


ROWS = [{"n": n, "t": "x"} for n in range(5)]
ROW_COLUMNS = {"n": "int64", "t": "string"}


def test_avro_that_is_cut_off_is_named() -> None:
    body = avro(ROWS, [optional("n", "long"), optional("t", "string")])
    world = landed(list(VALUES), body, columns=ROW_COLUMNS, format={"type": "avro"})
    (file,) = world.manifests["c1"].files
    body = world.store.objects[file.key][0]
    for wrong in (body[:-5], body[:30], b"Obj\x02" + body[4:], b""):
        world.overwrite(file, wrong)
        assert "object" in difference_types(world.verify())


def test_the_codec_of_a_commit_is_its_own_and_not_its_names() -> None:
    world = landed(list(VALUES), b"".join(value + b"\n" for value in VALUES), format={"codec": "gzip"})
    plain = world.manifests["c1"].files[0]
    world.overwrite(plain, compress("zstd", b"".join(value + b"\n" for value in VALUES)))
    world.change("c1", form=msgspec.structs.replace(world.manifests["c1"].form, codec="zstd"))
    assert difference_types(world.verify()) <= {"object"}
    assert world.verify().missing == 0
