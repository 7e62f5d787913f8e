"""The texts of errors, also of errors that quote others."""

import pytest

from s3lake.errors import ConfigurationError, StoreDeniedError


@pytest.mark.parametrize("kind", [ConfigurationError, StoreDeniedError])
def test_no_escape_code_of_a_server_reaches_a_terminal(kind: type[Exception]) -> None:
    message = "403 \x1b[2J\x1b]0;owned\x07 Verboten\r\u202e: grüße 日本\nnext line"
    assert str(kind(message)) == r"403 \x1b[2J\x1b]0;owned\x07 Verboten\r\u202e: grüße 日本" + "\nnext line"
