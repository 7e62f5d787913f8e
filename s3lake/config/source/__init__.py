"""Providers: where the texts of a configuration come from, a file, a directory of files or an address.

A text is handed on as it stands; what it means is the dialects' business. The environment that goes with it is
`dotenv.completed`, and variables that change single settings are `overrides` and `iggy`.
"""

from collections.abc import Mapping
from pathlib import Path

from s3lake.config.source.text import Source, text_of
from s3lake.errors import ConfigurationError

__all__ = ["Source", "sources"]


def sources(location: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
    """The texts at `location`, in the order of their names.

    Args:
        location: a file, a directory (its own files; hidden ones and directories inside are left out), or an address
            that begins with http:// or https://.
        environment: holds the settings `S3LAKE_CONFIG_HTTP_*` of an address.

    Raises:
        ConfigurationError: nothing can be had from there; no secret of the address or its headers is in the message.
    """
    if location.lower().startswith(("http://", "https://")):
        from s3lake.config.source import http

        return (http.fetched(location, http.Settings.of(environment)),)
    path = Path(location)
    if not path.is_dir():
        return (_read(path),)
    files = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
    if not files:
        raise ConfigurationError(f"{path}: there is no file in this directory; give a file, or a directory with some")
    return tuple(map(_read, files))


def _read(path: Path) -> Source:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file or directory; correct the path, or set S3LAKE_CONFIG") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    return Source(str(path), text_of(data, str(path)))
