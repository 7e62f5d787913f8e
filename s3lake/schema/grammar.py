"""Types as users write them: `decimal(10,2)`, `list<string>`, `struct<a: int64, "a b": date>`."""

from __future__ import annotations

import difflib
import functools
import re
from typing import TYPE_CHECKING, Any

from s3lake.schema.types import MOST_DIGITS, MOST_LEVELS, Decimal, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from lark import Lark, Token, Tree, UnexpectedInput

_EXAMPLES = {
    "DECIMAL": "decimal(10,2)",
    "LIST": "list<string>",
    "MAP": "map<string, int64>",
    "STRUCT": "struct<a: int64, b: string>",
}
_ALLOWED = ", ".join([*map(str, Primitive), *_EXAMPLES.values()])
_NAMES = [*map(str, Primitive), *map(str.lower, _EXAMPLES)]
_MARKS = {"LPAR": "(", "RPAR": ")", "LESSTHAN": "<", "COMMA": ",", "MORETHAN": ">", "COLON": ":"}
_WORD = re.compile(r"[A-Za-z_]\w*")
# STRING is a terminal of its own because only it is the key of a map. A field may be called like a type: the parser
# looks for those words only where a type can stand.
_GRAMMAR = rf"""
?type: PRIMITIVE | STRING | decimal | list | map | struct
decimal: DECIMAL "(" NUMBER "," NUMBER ")"
list: LIST "<" type ">"
map: MAP "<" STRING "," type ">"
struct: STRUCT "<" field ("," field)* ">"
field: (NAME | QUOTED) ":" type

PRIMITIVE: /({"|".join(str(one) for one in Primitive if one is not Primitive.STRING)})\b/i
STRING: /string\b/i
DECIMAL: /decimal\b/i
LIST: /list\b/i
MAP: /map\b/i
STRUCT: /struct\b/i
NAME: /[A-Za-z_]\w*/
QUOTED: /"([^"]|"")*"|`([^`]|``)*`/
NUMBER: /\d{{1,4}}(?!\d)/
%ignore /\s+/
"""


def parse(text: str) -> Type:
    """The type that `text` spells.

    Field names of a struct that are no plain names stand in double quotes or backticks.

    Raises:
        ValueError: it spells none; the message says where, and what is allowed.
    """
    from lark import UnexpectedInput  # few processes read a type

    try:
        return _Reader(text).type(_parser().parse(text), 0)
    except UnexpectedInput as error:
        raise _expected(text, error) from None


@functools.cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR, start="type", parser="lalr", keep_all_tokens=False)


class _Reader:
    """Makes types of what the parser found."""

    def __init__(self, text: str) -> None:
        self._text = text

    def type(self, node: Tree[Token] | Token, level: int) -> Type:
        from lark import Token

        if isinstance(node, Token):
            self._check(level, node)
            return Primitive(node.lower())
        opening, *inner = node.children
        assert isinstance(opening, Token)
        self._check(level, opening)
        match node.data:
            case "decimal":
                return self._decimal(*map(self._token, inner))
            case "list":
                return List(self.type(inner[0], level + 1))
            case "map":
                return Map(self.type(inner[1], level + 1))
        fields: dict[str, Type] = {}
        for field in inner:
            assert not isinstance(field, Token)
            name, type = field.children
            plain = _unquoted(self._token(name))
            if plain in fields:
                raise _error(self._text, self._token(name).start_pos, f"field {plain!r} is named twice: take one out")
            fields[plain] = self.type(type, level + 1)
        return Struct(fields)

    def _decimal(self, precision: Token, scale: Token) -> Decimal:
        decimal = Decimal(int(precision), int(scale))
        if not (1 <= decimal.precision <= MOST_DIGITS and decimal.scale <= decimal.precision):
            allowed = f"a precision of 1 to {MOST_DIGITS} and a scale of 0 to the precision"
            raise _error(self._text, precision.start_pos, f"{decimal} is out of range: {allowed}")
        return decimal

    def _check(self, level: int, token: Token) -> None:
        if level > MOST_LEVELS:
            raise _error(self._text, token.start_pos, f"more than {MOST_LEVELS} levels, which Parquet's readers refuse")

    def _token(self, node: Tree[Token] | Token) -> Token:
        from lark import Token

        assert isinstance(node, Token)
        return node


def _unquoted(name: str) -> str:
    quote = name[0]
    return name[1:-1].replace(quote * 2, quote) if quote in '"`' else str(name)


def _expected(text: str, error: UnexpectedInput) -> ValueError:
    """What could stand where the parser gave up, in the words of the type that is open there."""
    parser: Any = error.interactive_parser
    accepted: set[str] = parser.accepts()
    at_end = getattr(getattr(error, "token", None), "type", "") == "$END"
    at = len(text) if at_end else error.pos_in_stream or 0
    if "PRIMITIVE" in accepted:
        return _error(text, at, _no_type(text[at:]))
    if accepted <= {"$END"}:
        return _error(text, at, f"{text[at:][:20]!r} is left over: take it out")
    opened = [token.type for token in parser.parser_state.value_stack if getattr(token, "type", "") in _EXAMPLES]
    example = _EXAMPLES[opened[-1]]
    if accepted == {"STRING"}:
        return _error(text, at, f"keys of a map are strings: write {example}")
    if "NAME" in accepted:
        return _error(text, at, f"the name of a field is expected: write {example}")
    mark = next((repr(mark) for name, mark in _MARKS.items() if name in accepted), "a number")
    return _error(text, at, f"{mark} is expected: write {example}")


def _no_type(text: str) -> str:
    word = _WORD.match(text)
    if word is None:
        return f"a type is expected: {_ALLOWED}"
    near = difflib.get_close_matches(word[0].lower(), _NAMES, 1, 0.5)
    nearest = f"did you mean {near[0]}? " if near else ""
    return f"{word[0]!r} is no type: {nearest}There are {_ALLOWED}"


def _error(text: str, at: int | None, message: str) -> ValueError:
    return ValueError(f"{text!r}, position {(at or 0) + 1}: {message}")
