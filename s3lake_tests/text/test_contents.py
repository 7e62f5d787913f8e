"""Contents of records as they are printed: enough to find a mistake, and no value of a secret."""

import pytest

from s3lake.text.masking import format_content


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "null"),
        (b"", ""),
        (b"plain text", "plain text"),
        (b'{"a": 1}', '{"a":1}'),
        (b'{"schema":{"type":"int32"},"payload":{"a":1}}', '{"payload":{"a":1},"schema":{"type":"int32"}}'),
        (b'{"schema":"%b","payload":1}' % (b"s" * 300), '{"payload":1,"schema":"' + "s" * 177 + " …"),
        (b"\xff\x00", "2 bytes, not UTF-8: ff 00"),
        (b"\xff" * 40, f"40 bytes, not UTF-8: {'ff ' * 31}ff …"),
        (b"two\nlines\x1b[31m", "two\\nlines\\x1b[31m"),
        (b"x" * 300, "x" * 200 + " …"),
        (b'{"user":{"password":"hunter2","name":"eva"}}', '{"user":{"password":"********","name":"eva"}}'),
        (b'[{"api_key":[1,2]}]', '[{"api_key":"********"}]'),
        (b'{"password": "hunter2", broken', '{"password": ********, broken'),
        (b'{"token": "half', '{"token": ********'),
        (b"token=hunter2&page=3", "token=********&page=3"),
        (b"see https://eva:hunter2@host/path", "see https://********@host/path"),
    ],
)
def test_contents_are_shown_on_one_line_and_without_secrets(content: bytes | None, expected: str) -> None:
    assert format_content(content) == expected


def test_headers_of_a_session_are_hidden() -> None:
    assert format_content(b"Bearer abc", name="Authorization") == "********"
    assert format_content(b"eu", name="region") == "eu"


def test_a_content_is_printed_whole_without_a_limit() -> None:
    assert format_content(b"x" * 300, None) == "x" * 300
