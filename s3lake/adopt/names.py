"""What connectors call their objects: the topic-partition and the offset in a key.

Plain arguments, which the front end of a dialect knows; see reference/lenses.md 1.1 to 1.3, and
confluent_aiven_iggy.md 1.1 and 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

_MARK = r"(?:~[0-9a-f]{8,})?"  # of a replacing commit of ours
_VARIABLE = re.compile(r"\{\{\s*(\w+)((?::\w+=\w+)*)\s*\}\}")


@dataclass(frozen=True)
class Names:
    """The names of one topic's objects.

    Attributes:
        prefix: what all of them begin with.
        pattern: of a whole key, with the groups `partition` and `offset`; `stamps` where the name has timestamps,
            `sidecar` where it holds only keys or headers, `directory` where it tells what the file was made for.
        char: what numbers are padded with.
        last: the offset is the file's last record's, else its first one's.
        alone: every record of a topic-partition goes into the same run of files, one file after the other.
        lines: text without a known extension is one record a line.
    """

    prefix: str
    pattern: re.Pattern[str]
    char: str = "0"
    last: bool = False
    alone: bool = True
    lines: bool = False

    def numbers(self, key: str) -> tuple[int, int, re.Match[str]] | None:
        """Topic-partition and offset in `key`; None where it is no such name."""
        found = self.pattern.fullmatch(key)
        if found is None:
            return None
        return self._number(found["partition"]), self._number(found["offset"]), found

    def _number(self, text: str) -> int:
        return int(text if self.char.isdigit() else text.strip(self.char))


class Naming(Protocol):
    """How a connector was set to name its objects."""

    def names(self, topic: str) -> Names | None:
        """The names of a topic's objects; None where they do not tell offsets."""
        ...


@dataclass(frozen=True)
class LensesNames:
    """The Lenses connector's, as it really names them: LAST offset. Objects that s3lake wrote are known by metadata.

    Attributes:
        root: KCQL's prefix as keys begin with it: empty, or ending in a slash.
        layout: `default` is topic/partition/OFFSET; the others end in topic(PARTITION_OFFSET).
        include_keys: `partition.include.keys`, which matters to the default layout.
        suffix: `key.suffix`.
        padding: of numbers.
        char: what they are padded with.
        observed: s3lake wrote here with `layout.observed_names`, so its offsets are last ones too.
    """

    root: str = ""
    layout: Literal["default", "partition_by", "no_partition"] = "default"
    include_keys: bool = False
    suffix: str = ""
    padding: Literal["left", "right", "none"] = "left"
    char: str = "0"
    observed: bool = False

    def names(self, topic: str) -> Names | None:
        """See `Naming.names`."""
        if self.padding == "right" and self.char.isdigit():
            return None  # 1 and 10 are one text
        pad = f"{re.escape(self.char)}*"
        number = {"left": rf"{pad}\d+", "right": rf"\d+{pad}", "none": r"\d+"}[self.padding]
        partition, offset = rf"(?P<partition>{number})", rf"(?P<offset>{number})"
        topic_is, partition_is = ("topic=", "partition=") if self.include_keys else ("", "")
        default = self.layout == "default"
        prefix = f"{self.root}{topic_is}{topic}/" if default else self.root
        if default:
            stem = rf"{partition_is}{partition}/{offset}(?P<stamps>_-?\d+_-?\d+)?"
        else:  # not what is being uploaded: its temporary name ends like the final one
            stem = rf"(?!\.temp-upload/)(?:.*/)?{re.escape(topic)}\({partition}_{offset}\)"
        ending = rf"{re.escape(self.suffix)}{_MARK}\.[^/]+"
        pattern = re.compile(re.escape(prefix) + stem + ending, re.DOTALL)
        return Names(prefix, pattern, self.char, last=True, alone=self.layout != "partition_by")


@dataclass(frozen=True)
class ConfluentNames:
    """The Confluent connector's: topic+PARTITION+FIRST offset below the directory of its partitioner.

    Attributes:
        partitioned: the directory depends on the record, as it does with every partitioner but the default one.
    """

    topics_dir: str = "topics"
    directory_delim: str = "/"
    file_delim: str = "+"
    partitioned: bool = False

    def names(self, topic: str) -> Names:
        """See `Naming.names`."""
        root = f"{self.topics_dir}{self.directory_delim}" if self.topics_dir.strip() else ""
        prefix = f"{root}{topic}{self.directory_delim}"
        file, between = re.escape(topic), re.escape(self.file_delim)
        pattern = (
            rf"{re.escape(prefix)}(?P<directory>.+){re.escape(self.directory_delim)}{file}{between}(?P<partition>\d+)"
            rf"{between}(?P<offset>\d+)(?P<sidecar>\.(?:keys|headers))?(?:\.[^/]*)?"
        )
        return Names(prefix, re.compile(pattern, re.DOTALL), alone=not self.partitioned)


@dataclass(frozen=True)
class AivenNames:
    """The Aiven connector's: the template, or in prefix mode the prefix and `{{topic}}-{{partition}}-{{start_offset}}`.

    The offset is the topic-partition's first one of a flush: all files of one flush share it.
    """

    template: str = "{{topic}}-{{partition}}-{{start_offset}}"

    def names(self, topic: str) -> Names | None:
        """See `Naming.names`."""
        pieces = list(_pieces(self.template, topic))
        pattern = "".join(pieces) + r"(?:\.[A-Za-z0-9.]+)?"
        if "(?P<partition>" not in pattern or "(?P<offset>" not in pattern:
            return None
        literal = []
        for text, variable, _ in _split(self.template):
            if variable not in ("", "topic"):
                break
            literal.append(topic if variable else text)
        return Names("".join(literal), re.compile(pattern, re.DOTALL), lines=True)


_PATTERNS = {
    "partition": r"(?P<partition>\d+)",
    "start_offset": r"(?P<offset>\d+)",
    "timestamp": r"\d{2,4}",
    "utc_date": r"\d{4}-\d\d-\d\d",
    "local_date": r"\d{4}-\d\d-\d\d",
    "key": r".+",
}


def _pieces(template: str, topic: str) -> Iterator[str]:
    known: set[str] = set()
    for text, variable, _ in _split(template):
        if variable == "topic":
            yield re.escape(topic)
        elif variable:
            # A name that comes twice is a group once.
            pattern = _PATTERNS[variable]
            yield re.sub(r"\?P<\w+>", "?:", pattern) if variable in known else pattern
            known.add(variable)
        else:
            yield re.escape(text)


def _split(template: str) -> Iterator[tuple[str, str, str]]:
    """Texts and variables in turn, as (text, variable, options); what is no known variable stays text."""
    position = 0
    for found in _VARIABLE.finditer(template):
        if found[1] not in _PATTERNS and found[1] != "topic":
            continue
        yield template[position : found.start()], "", ""
        yield "", found[1], found[2]
        position = found.end()
    yield template[position:], "", ""
