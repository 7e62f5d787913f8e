"""What an S3 server was asked, by the log that it writes."""

import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r"\S+ (?P<bucket>\S+) \[(?P<at>[^]]+)\] \S+ \S+ \S+ s3_(?P<operation>\w+) (?P<key>.*?) /\S* \d{3} ")


class Request(NamedTuple):
    """One request; `at` is the second in which it was answered."""

    at: float
    operation: str
    key: str


def requests(log: Path) -> list[Request]:
    """All of them, in order."""
    found = []
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := _LINE.match(line):
                at = datetime.strptime(match["at"], "%d/%B/%Y:%H:%M:%S %z").timestamp()
                found.append(Request(at, match["operation"], match["key"]))
    return found
