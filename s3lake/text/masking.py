"""Which configured values must never be printed."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|jaas|credential|private|user\.?info|basic\.?auth|oauthbearer\.(config|extensions)"
    r"|\.key(\W|$)|(api|customer|account|signing|encryption|master|shared)[._-]?key|access[._-]?key(?![._-]?id)"
    r"|(?<![a-z\d])pass(?![a-z\d])|connection[._-]?string|external[._-]?id|authori[sz]ation|cookie|^header\.(?!converter)",
    re.IGNORECASE,
)
# Secrets hide inside harmless names too, for example in the JVM options of spark.conf.
_ASSIGNED = re.compile(
    r"""(passw|passphrase|pwd|secret|token|authori[sz]ation)([^\s=]*=|\w*["']\s*:)|\bpass=|\bbearer\s+\S""",
    re.IGNORECASE,
)
_PROXY = re.compile(r"proxy", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/?#\s'\"]+(?=@)")
_VALUES = re.compile(r"""(['"`]).*?\1|\b0x[0-9a-fA-F]+\b|(?<![\w-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?""", re.DOTALL)
MASK = "********"
# What is shorter stands in many a word of ours that is no secret.
_PART_OF_WORDS = 8
_SWITCHES = frozenset({"", "true", "false"})
_WORD = 4


def masked(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as they may be printed, however deep."""
    return {name: _masked(name, value) for name, value in properties.items()}


def _masked(name: str, value: Any) -> Any:
    match value:
        case str():
            return shown(name, value)
        case None | bool():
            return value
        case _ if is_secret(name):
            return MASK
        case Mapping():
            return masked(value)
        case list() | tuple():
            return [_masked(name, item) for item in value]
    return value


def shown(name: str, value: str) -> str:
    """A property's value as it may be printed: without what is secret by name or by form, or without its user."""
    if is_secret(name) or _ASSIGNED.search(value) or (_PROXY.search(name) and "@" in value and "://" not in value):
        return MASK
    return _USER.sub(MASK, value)


def is_secret(name: str) -> bool:
    """Whether a property of this name holds something that must never be printed."""
    return _SECRET.search(name) is not None


def quote(field: str, value: str) -> str:
    """Return a value of a record as a refusal may quote it: masked if the path or name of its field is a secret's."""
    return MASK if is_secret(field) else value


def strip_values(message: str) -> str:
    """Return another program's message without texts in quotes and numbers: it may quote a field that nobody names."""
    return _VALUES.sub("…", message)


def is_masked(text: str) -> bool:
    """Whether a printed value lacks something."""
    return (text.strip("*") == "" and len(text) >= len(MASK)) or f"://{MASK}@" in text


def users(text: str) -> set[str]:
    """User and password of the addresses in a text: together, and the password alone."""
    logins = set(_USER.findall(text))
    return logins | {password for one in logins if (password := one.partition(":")[2])}


def without(message: str, secrets: Iterable[str]) -> str:
    """A message that may quote values without secrets, and without users of addresses.

    A short secret is masked where it stands alone: inside of words it would tell itself, and make the message
    unreadable. `true` and `false` are no secrets: they switch something that has a secret's name.
    """
    for secret in sorted((one for one in secrets if one.lower() not in _SWITCHES), key=len, reverse=True):
        for spelled in {repr(secret)[1:-1], secret}:
            pattern = re.escape(spelled)
            if len(secret) < _WORD:
                pattern = rf"(?<=['\"]){pattern}(?=['\"])"
            elif len(secret) < _PART_OF_WORDS:
                pattern = rf"(?<!\w){pattern}(?!\w)"
            message = re.sub(pattern, MASK, message)
    return _USER.sub(MASK, message)
