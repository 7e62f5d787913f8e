"""A destination of s3lake's hours: a directory with a file of JSON lines for each hour.

The first line of a file names what it contains. A file is written under another name and then renamed, so a crash while
writing leaves the former file as it was.
"""

import json
import os
from pathlib import Path

from s3lake.lake.forwarding.complete_hour import CompleteHour


class HourFiles:
    """The class that the entry point names; the options are its arguments."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self.place = f"files in {directory}"

    def read_content(self, hour: CompleteHour) -> str | None:
        """Return the content that the hour's file has now."""
        path = self._path(hour)
        if not path.exists():
            return None
        with path.open(encoding="utf-8") as file:
            return str(json.loads(file.readline())["content"])

    def write(self, hour: CompleteHour) -> None:
        """Write the file again. If `hour.batches()` raises, the former file stays."""
        path = self._path(hour)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"content": hour.content, "commits": hour.commits}) + "\n")
            for batch in hour.batches():
                file.writelines(row.document.decode() + "\n" for row in batch)
        unfinished.replace(path)

    def _path(self, hour: CompleteHour) -> Path:
        return self.directory / hour.bucket / hour.sink / hour.topic / f"{hour.hour}.jsonl"
