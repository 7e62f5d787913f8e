"""moto's S3 server, one writer at a time: `python -m s3lake.demo.moto_server -H 127.0.0.1 -p PORT`.

Each request is a thread of moto's, which looks whether a condition holds and then writes. Of two writers at once on one
condition both won now and then, which no S3 does that may be landed in.
"""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from moto import server
from moto.s3.responses import S3Response

_writing = threading.Lock()


def _alone(respond: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(respond)
    def responding(*arguments: Any, **named: Any) -> Any:
        with _writing:  # the request's body has been read: nobody waits for a slow client here
            return respond(*arguments, **named)

    return responding


if __name__ == "__main__":
    for writing in ("put_object", "_key_response_post"):  # the latter completes uploads
        setattr(S3Response, writing, _alone(getattr(S3Response, writing)))
    server.main()
