"""Which configured values must never be printed."""

import re
from collections.abc import Mapping

_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|jaas|credential|private|user\.?info|\.key(\.|$)|api[._-]?key", re.IGNORECASE
)
# Secrets hide inside harmless names too, for example in the JVM options of spark.conf.
_ASSIGNED = re.compile(r"(passw|passphrase|pwd|secret|token)[^\s=]*=", re.IGNORECASE)
MASK = "********"


def masked(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties as they may be printed."""
    return {name: MASK if is_secret(name) or _ASSIGNED.search(value) else value for name, value in properties.items()}


def is_secret(name: str) -> bool:
    """Whether a property of this name holds something that must never be printed."""
    return _SECRET.search(name) is not None
