"""What a sink's files are: the format's own framing and codec, the pairs that there are, the page that lists them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from s3lake.config.model import Format, Framing, Sidecars
from s3lake.config.model.format import FormatType
from s3lake.land.request import stage_values
from s3lake.records.encode import FileFormat
from s3lake.records.encode.formats import CODECS, FORMATS
from s3lake_tests.records.encode.written_files import written

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
BEGIN, END = "<!-- matrix: made by s3lake_tests/records/encode/test_formats.py -->\n", "<!-- end -->\n"
PAIRS = [(type, codec) for type, format in FORMATS.items() for codec in format.codecs]
LEVELS = {name: codec.levels for name, codec in CODECS.items() if codec.levels}


@pytest.mark.parametrize(
    ("type", "codec", "framing"),
    [
        ("json", "none", ("", "\n", "\n")),
        ("json_array", "none", ("[\n", ",\n", "\n]")),
        ("csv", "none", ("", "\n", "\n")),
        ("text", "none", ("", "\n", "\n")),
        ("bytes", "none", None),
        ("avro", "snappy", None),
        ("parquet", "zstd", None),
    ],
)
def test_each_format_has_its_codec_and_its_framing(type: FormatType, codec: str, framing: Any) -> None:
    assert stage_values.build_file_format(Format(type=type)) == FileFormat(type, codec, framing=framing)


def test_the_users_choices_are_kept() -> None:
    chosen = Format(type="csv", codec="gzip", level=9, header=False, framing=Framing(closing=""))
    assert stage_values.build_file_format(chosen) == FileFormat("csv", "gzip", 9, header=False, framing=("", "\n", ""))


@pytest.mark.parametrize(
    ("type", "codec", "framing"),
    [
        ("avro", "snappy", None),
        ("parquet", "zstd", None),
        ("json", "none", ("", "\n", "\n")),
        ("bytes", "none", ("", "\n", "\n")),
    ],
)
def test_sidecars_hold_many_records_in_their_formats_codec(type: str, codec: str, framing: Any) -> None:
    assert stage_values.build_file_format(Sidecars().format(type)) == FileFormat(type, codec, framing=framing)


@pytest.mark.parametrize(("type", "codec"), [(t, c) for t in FORMATS for c in CODECS if (t, c) not in PAIRS])
def test_a_codec_that_a_format_cannot_take_is_an_error_that_names_the_others(type: Any, codec: Any) -> None:
    allowed = ", ".join(FORMATS[type].codecs)
    with pytest.raises(ValidationError, match=f"codec {codec} cannot .* format {type}.*: use one of {allowed}"):
        Format(type=type, codec=codec)


def test_the_error_for_lzo_has_the_reason() -> None:
    with pytest.raises(ValidationError, match="Arrow writes no LZO, and pyarrow, DuckDB, polars and Spark"):
        Format(type="parquet", codec="lzo")


@pytest.mark.parametrize(("type", "codec"), PAIRS)
@pytest.mark.parametrize("which", [0, 1])
def test_every_pair_writes_a_file_at_its_lowest_and_its_highest_level(type: Any, codec: Any, which: int) -> None:
    level = LEVELS[codec][which] if codec in LEVELS else None
    tabular = pa.RecordBatch.from_arrays([pa.array([1, 2])], names=["a"])
    payload = pa.array([b"1"], pa.binary()) if type not in ("avro", "parquet", "csv") else tabular
    assert written(stage_values.build_file_format(Format(type=type, codec=codec, level=level)), [payload]) != b""


@pytest.mark.parametrize(
    ("codec", "level"), [(codec, bound) for codec, (low, high) in LEVELS.items() for bound in (low - 1, high + 1)]
)
def test_a_level_out_of_range_is_an_error_that_names_the_range(codec: Any, level: int) -> None:
    type = next(type for type, of_format in PAIRS if of_format == codec)
    low, high = LEVELS[codec]
    with pytest.raises(ValidationError, match=f"{level} is out of range: codec {codec} takes {low} to {high}"):
        Format(type=type, codec=codec, level=level)


# docs/formats.md


def matrix() -> Iterator[str]:
    """The table of the page, from the code's own."""
    codecs = [name for name, codec in CODECS.items() if not codec.refusal]
    yield f"| format | extension | {' | '.join(codecs)} |\n"
    yield "|---|---|" + ":-:|" * len(codecs) + "\n"
    for type, format in FORMATS.items():
        marks = ["**✓**" if codec == format.codecs[0] else "✓" * (codec in format.codecs) for codec in codecs]
        yield f"| `{type}` | `{Format(type=type).extension}` | {' | '.join(marks)} |\n"
    levels = ["{} to {}".format(*LEVELS[codec]) if codec in LEVELS else "" for codec in codecs]
    yield f"| *levels* | | {' | '.join(levels)} |\n"
    yield f"| *default* | | {' | '.join(str(CODECS[codec].level or '') for codec in codecs)} |\n"


def test_the_page_has_the_matrix_of_the_code() -> None:
    found = re.search(re.escape(BEGIN) + "(.*?)" + re.escape(END), PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{PAGE.name} has lost the marks of its matrix"
    assert found[1] == "".join(matrix())
