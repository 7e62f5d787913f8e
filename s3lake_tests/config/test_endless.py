"""Configurations made to never end: each is refused, with its place, within two seconds of work."""

import time

import pytest

from s3lake.config import native
from s3lake.config.report import Report
from s3lake.config.syntax import properties
from s3lake.errors import ConfigurationError

KAFKA = "kafka: {bootstrap_servers: 'k:9092'}\n"
LETTERS = list(zip("abcdefghi", "bcdefghij", strict=True))


def grown(first: str, next: str) -> str:
    return first + "".join(next.format(one=one, before=before) for before, one in LETTERS)


@pytest.mark.parametrize(
    "text",
    [
        grown("a: &a [x]\n", "{one}: &{one} [" + ",".join(["*{before}"] * 9) + "]\n"),
        grown(
            "a: &a {{x: 1}}\n".format(),
            "{one}: &{one} {{" + ", ".join(f"{k}: *{{before}}" for k in "klmnopqrs") + "}}\n",
        ),
        grown("a: &a {x: 1}\n", "{one}: &{one} {{<<: [" + ",".join(["*{before}"] * 9) + "], {one}1: *{before}}}\n"),
        "a: &a {"
        + ", ".join(f"k{n}: 1" for n in range(1000))
        + "}\nb:\n"
        + "  - {<<: ["
        + ",".join(["*a"] * 50)
        + "]}\n" * 20,
    ],
    ids=["lists", "mappings", "merges", "merges of one"],
)
def test_aliases_that_grow_without_end_are_refused(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ConfigurationError, match=r"^f:.*"):
        native.loads(KAFKA + text, "f")
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "text", ["a=x" + " " * 100_000 + "x", "a" + " " * 100_000, "a=" + "\\\\" * 50_000 + " " * 50_000]
)
def test_a_long_line_of_properties_is_read_in_time(text: str) -> None:
    start = time.process_time()
    properties.read(text, Report("f"))
    assert time.process_time() - start < 2
