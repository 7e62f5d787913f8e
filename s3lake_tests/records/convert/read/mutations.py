"""JSON that is broken in places, or only different."""

import random

PIECES = [
    *(bytes([byte]) for byte in range(256)),
    *(b'"', b"\\", b",", b":", b"[", b"]", b"{", b"}", b"-", b"0", b".", b"e", b"E", b"+", b" ", b"\n", b"\r", b"\t"),
    *(b'\\"', b"\\u", b"\\u00", b"\\ud83d", b"\\ude00", b"\\x", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3\xa9", b"\xe6"),
    *(b"1e999", b"01", b"1.", b"NaN", b"Infinity", b"true", b"nul", b'"":', b',"a":1', b"[]", b"{}", b"//", b"[" * 70),
]


def mutate(random_: random.Random, value: bytes) -> bytes:
    """Return the value with some pieces put in, left out, or in the place of others."""
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        start = random_.randint(0, len(value))
        end = start + random_.choice((0, 0, 1, 1, 2, 8, len(value)))
        piece = random_.choice((b"", random_.choice(PIECES), value[start:end]))
        value = value[:start] + piece + value[random_.choice((start, end)) :]
    return value
