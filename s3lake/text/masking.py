"""Finds configured values that must never be printed, and masks them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from s3lake.errors import printable

_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|jaas|credential|private|user\.?info|basic\.?auth|oauthbearer\.(config|extensions)"
    r"|\.key(\W|$)|(api|customer|account|signing|encryption|master|shared)[._-]?key|access[._-]?key(?![._-]?id)"
    r"|(?<![a-z\d])pass(?![a-z\d])|connection[._-]?string|external[._-]?id|authori[sz]ation|cookie|^header\.(?!converter)",
    re.IGNORECASE,
)
# Secrets are also in settings with other names, for example in the JVM options of spark.conf.
_ASSIGNED = re.compile(
    r"""(passw|passphrase|pwd|secret|token|authori[sz]ation)([^\s=]*=|\w*["']\s*:)|\bpass=|\bbearer\s+\S""",
    re.IGNORECASE,
)
_PROXY = re.compile(r"proxy", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+(?=@)")
_HEADER = re.compile(r"""(?<=Invalid header value )b?(['"])(?:\\.|(?!\1).)*\1?""")
"""The header in an error of http.client or urllib3: it may be a session's token, or a signature."""
_LOGIN = re.compile(r"[^\s:/,@]+:[^\s,@]+@")
_VALUES = re.compile(r"""(['"`]).*?\1|\b0x[0-9a-fA-F]+\b|(?<![\w-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?""", re.DOTALL)
MASK = "********"
_PART_OF_WORDS, _WORD = 8, 4  # shorter secrets are masked only as whole words, or only in quotes
_SWITCHES = frozenset({"", "true", "false"})


def mask_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties with their secrets masked, at any depth."""
    return {name: _mask(name, value) for name, value in properties.items()}


def _mask(name: str, value: Any) -> Any:
    match value:
        case str():
            return mask_value(name, value)
        case None | bool():
            return value
        case _ if is_secret(name):
            return MASK
        case Mapping():
            return mask_properties(value)
        case list() | tuple():
            return [_mask(name, item) for item in value]
    return value


def mask_value(name: str, value: str) -> str:
    """Return a property's value: masked if it is a secret by its name or form, else with users of addresses masked."""
    if is_secret(name) or _ASSIGNED.search(value) or (_PROXY.search(name) and "@" in value and "://" not in value):
        return MASK
    return _USER.sub(MASK, value)


def is_secret(name: str) -> bool:
    """Return whether a property of this name must never be printed."""
    return _SECRET.search(name) is not None


def quote_masked(field: str, value: str) -> str:
    """Return a value of a record as a refusal may quote it: masked if the path or name of its field is a secret's."""
    return MASK if is_secret(field) else value


def strip_values(message: str) -> str:
    """Return another program's message without texts in quotes and numbers: it may quote a field that is a secret."""
    return _VALUES.sub("…", message)


def is_masked(text: str) -> bool:
    """Return whether a part of a printed value is masked."""
    return (text.strip("*") == "" and len(text) >= len(MASK)) or f"://{MASK}@" in text


def mask_logins(text: str) -> str:
    """Mask users and passwords of addresses, also of those without a scheme."""
    return _LOGIN.sub(f"{MASK}@", text)


def find_logins(text: str) -> set[str]:
    """Find the users and passwords of the addresses in a text: both together, and the password alone."""
    logins = set(_USER.findall(text))
    return logins | {password for login in logins if (password := login.partition(":")[2])}


def mask_secrets(message: str, secrets: Iterable[str]) -> str:
    """Mask the secrets, the users of addresses and invalid headers in a message.

    A short secret is masked only as a whole word: masked inside of words, it could be guessed, and the message could
    not be read. `true` and `false` are not secrets: they switch something that has a secret's name.
    """
    for secret in sorted((secret for secret in secrets if secret.lower() not in _SWITCHES), key=len, reverse=True):
        for text in {repr(secret)[1:-1], secret}:
            pattern = re.escape(text)
            if len(secret) < _WORD:
                pattern = rf"(?<=['\"]){pattern}(?=['\"])"
            elif len(secret) < _PART_OF_WORDS:
                pattern = rf"(?<!\w){pattern}(?!\w)"
            message = re.sub(pattern, MASK, message)
    return _USER.sub(MASK, _HEADER.sub(MASK, message))


# Keys, values and headers of records: they are other people's data

_SESSION = re.compile(r"session", re.IGNORECASE)
_MEMBER = re.compile(r"""(["']?([\w.-]+)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|[^\s,;&}\]]+)""")
_HEX = 32
_ENVELOPE = dict.fromkeys(("payload", "schema")).keys()
"""Members of a value as Kafka Connect's JsonConverter writes it: the schema is last, and cut away first."""


def format_content(content: bytes | None, most: int | None = 200, name: str = "") -> str:
    """Format the first `most` characters of a content on one line, without control characters and secrets.

    `name` is that of a header.
    """
    if content is None:
        return "null"
    if _is_hidden(name):
        return MASK
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes, not UTF-8: {_cut(content[:_HEX].hex(' '), len(content) > _HEX)}"
    text = printable(mask_secrets(_mask_content(text), ()).replace("\n", "\\n"))
    return text if most is None else _cut(text[:most], len(text) > most)


def _mask_content(text: str) -> str:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, dict) and document.keys() == _ENVELOPE:
        document = {name: document[name] for name in _ENVELOPE}
    if isinstance(document, dict | list):
        return msgspec.json.encode(_mask_members(document)).decode()
    return _MEMBER.sub(lambda match: match[1] + MASK if _is_hidden(match[2]) else match[0], text)


def _mask_members(document: Any) -> Any:
    match document:
        case dict():
            return {name: MASK if _is_hidden(name) else _mask_members(value) for name, value in document.items()}
        case list():
            return [_mask_members(value) for value in document]
    return document


def _is_hidden(name: str) -> bool:
    return is_secret(name) or _SESSION.search(name) is not None


def _cut(text: str, more: bool) -> str:
    return f"{text} …" if more else text
