"""A text of a configuration, and what errors call the place that it came from."""

from dataclasses import dataclass

from s3lake.errors import ConfigurationError


@dataclass(frozen=True)
class Source:
    """One text.

    Attributes:
        name: what errors call it: a path, or an address without anything secret.
        text: as it stands there.
    """

    name: str
    text: str


def text_of(data: bytes, name: str) -> str:
    """The text in a file's bytes.

    Raises:
        ConfigurationError: they are no UTF-8; the message has line and column.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        wrong = f"byte 0x{error.object[error.start]:02x} is no UTF-8"
        raise ConfigurationError(f"{name}:{line}:{column}: {wrong}; save it as UTF-8") from None
