"""The rules of a template that need the whole sink."""

from typing import TYPE_CHECKING

from s3lake.convert import converters
from s3lake.convert.converters import CONVERTERS
from s3lake.layout import template
from s3lake.layout.pieces import Extension, Field, Header, Key, Number, Piece, Text, Time, Topic

if TYPE_CHECKING:
    from s3lake.sink import Sink


def check_template(sink: "Sink") -> None:
    """Check the rules of a template that need the whole sink.

    Raises:
        ValueError: a rule is broken.
    """
    layout = sink.layout
    offsets = []
    for name, text, pieces in (
        ("template", layout.template, layout.pieces),
        ("tombstones", layout.tombstones, layout.tombstone_pieces),
    ):
        if text is not None and pieces is not None:
            if text.startswith("/") and sink.root:
                raise template.template_error(text, 0, "a name is missing between the prefix and '/': take it out")
            for rule in (_check_converters, _check_elements, _check_digits, _check_index):
                rule(name, pieces, sink)
            if name == "tombstones":
                _check_tombstones(pieces)
            offsets.append(has_offset(pieces))
    if len(set(offsets)) > 1:
        raise ValueError("template and tombstones have either both an offset or none: add {offset} to the other")


def has_offset(pieces: tuple[Piece, ...]) -> bool:
    """Return whether the key contains the offset that a file begins or ends with."""
    return any(isinstance(piece, Number) and piece.name in ("offset", "last_offset") for piece in pieces)


def _converters_of_json() -> str:
    return converters.in_words(lambda converter: converter.gives == "json" and not converter.framed)


def _check_converters(name: str, pieces: tuple[Piece, ...], sink: "Sink") -> None:
    for piece in pieces:
        if (
            isinstance(piece, Field | Time)
            and piece.source == "value"
            and CONVERTERS[sink.converter.value].gives != "json"
        ):
            what = "{field:…}" if isinstance(piece, Field) else "{time:…} of layout.time.source field"
            raise ValueError(
                f"{name}: {what} needs a field of the value, which converter.value {sink.converter.value} does not "
                f"give: set converter.value to {_converters_of_json()}"
            )
        if isinstance(piece, Key) and piece.path and CONVERTERS[sink.converter.key].gives != "json":
            raise ValueError(
                f"{name}: {{key:{'.'.join(piece.path)}}} needs a field of the key, which converter.key "
                f"{sink.converter.key} does not give: set converter.key to {_converters_of_json()}, or write {{key}}"
            )


def _check_elements(name: str, pieces: tuple[Piece, ...], sink: "Sink") -> None:
    """Check that files of different topics, topic-partitions and offsets get different keys."""
    if not sink.exactly_once:
        return
    lacking = []
    if sink.has_several_topics and not any(isinstance(piece, Topic) for piece in pieces):
        lacking.append("{topic}")
    if not any(isinstance(piece, Number) and piece.name == "partition" for piece in pieces):
        lacking.append("{partition}")
    if not has_offset(pieces):
        lacking.append("{offset}")
    if lacking:
        raise ValueError(
            f"{name} lacks {' and '.join(lacking)}: a later file would get the key of an earlier one and replace it; "
            f"add {'them' if len(lacking) > 1 else 'it'}, or allow that with exactly_once: false"
        )


def _check_digits(name: str, pieces: tuple[Piece, ...], sink: "Sink") -> None:
    """Check that a number is never next to another element's digits."""
    before: Piece | None = None
    between = ""
    for piece in pieces:
        text = _fixed_text(piece, sink)
        if text is not None:
            between += text
            continue
        digits_only = not between or (between.isascii() and between.isdigit())
        if before is not None and digits_only and (isinstance(before, Number) or isinstance(piece, Number)):
            raise ValueError(
                f"{name}: {_spell(before)} and {_spell(piece)} are next to each other, so that two offsets can get one "
                "key: write something that is not a digit between them, for example '-'"
            )
        before, between = piece, ""


def _fixed_text(piece: Piece, sink: "Sink") -> str | None:
    match piece:
        case Text(text):
            return text
        case Extension():
            return sink.extension
        case Topic() if len(sink.topics) == 1:
            return sink.topics[0]
    return None


def _check_index(name: str, pieces: tuple[Piece, ...], sink: "Sink") -> None:
    """Check that the template's text does not lead into the index."""
    first = pieces[0].text if isinstance(pieces[0], Text) else ""
    head = sink.root + first
    index = sink.index.prefix.rstrip("/") + "/"
    if head.startswith(index):
        raise ValueError(
            f"{name}: {head!r} is in the index {index!r}: choose another beginning, or another index.prefix"
        )


def _check_tombstones(pieces: tuple[Piece, ...]) -> None:
    if any(isinstance(piece, Field | Time) and piece.source == "value" for piece in pieces):
        raise ValueError("tombstones: a record without a value has no fields: take {field:…} and times of a field out")


def _spell(piece: Piece) -> str:
    """Return an element as templates write it."""
    name = piece.name if isinstance(piece, Number) else type(piece).__name__.lower()
    path = (piece.name,) if isinstance(piece, Header) else getattr(piece, "path", ())
    argument = getattr(piece, "pattern", ".".join(path))
    return f"{{{name}:{argument}}}" if argument else f"{{{name}}}"
