"""One TOML file of Apache Iggy's connectors: its values, and the places of its keys."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from s3lake.config.read import toml
from s3lake.config.report import Path, Place, Setting, dotted, is_comment
from s3lake.errors import ConfigurationError


@dataclass(frozen=True)
class File:
    """One TOML file: its values, and the places of its keys."""

    name: str
    data: dict[str, Any]
    places: Mapping[Path, Place]

    @classmethod
    def of(cls, path: pathlib.Path) -> File:
        """Read the file at `path`.

        Raises:
            ConfigurationError: it cannot be read.
        """
        try:
            return cls(str(path), *toml.read(path.read_text("utf-8"), str(path)))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise ConfigurationError(f"{path}: cannot be read: {why}") from None

    @property
    def key(self) -> str:
        """The connector's key, or the name of its file."""
        return str(self.data.get("key", pathlib.Path(self.name).stem))

    def settings(self, *skipped: str) -> list[Setting]:
        """Return every value that is not a table, in the file's order."""
        settings = []
        for path, value in leaves({name: content for name, content in self.data.items() if name not in skipped}):
            key, shown = dotted(path), str(value).lower() if isinstance(value, bool) else str(value)
            place = self.places.get(path, Place(self.name, key=key))
            settings.append(Setting(key, shown.strip(), place, (), value))
        return settings


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value that is not a table, with its path."""
    tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    if isinstance(value, dict):
        for name, inner in value.items():
            if is_comment(name):
                continue
            yield from leaves(inner, (*path, name))
    elif tables:
        for position, inner in enumerate(value):
            yield from leaves(inner, (*path, position))
    else:
        yield path, value
