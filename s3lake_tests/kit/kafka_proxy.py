"""A proxy in front of a Kafka broker that loses or delays requests."""

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import TypeVar

P = TypeVar("P", bound="ProxiedKafka")


class ProxiedKafka:
    """Passes frames of Kafka's protocol on, and replaces the broker's port in answers by its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.split(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        own = self._listener.getsockname()[1]
        self.bootstrap_servers = f"127.0.0.1:{own}"
        # Brokers name themselves by host and port, the one after the other, in every version of every answer.
        self._theirs, self._ours = (host.encode() + at.to_bytes(4, "big") for at in (int(port), own))

    def __enter__(self: P) -> P:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()

    def fault(self, api_key: int) -> str | None:
        """Return what happens to the next request; 2 is the kind that asks for offsets (Kafka's protocol).

        `slow` is late; `unsent` ends the connection before it is sent on, `unanswered` before its answer comes back;
        None is passed on.
        """
        raise NotImplementedError

    def delay_s(self) -> float:
        """Of a request that is slow."""
        return 0.0

    def unanswered(self) -> None:
        """An answer has come, and is not passed back."""

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        lost: set[bytes] = set()  # ids of requests whose answers are not passed back
        with client, contextlib.suppress(OSError), socket.create_connection(self._upstream) as broker:
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._answer, args=(client, broker, lost), daemon=True).start()
            while (frame := _frame(client)) is not None:
                fault = self.fault(int.from_bytes(frame[4:6], "big"))
                if fault == "unsent":
                    return
                if fault == "unanswered":
                    lost.add(frame[8:12])
                if fault == "slow":
                    time.sleep(self.delay_s())
                broker.sendall(frame)

    def _answer(self, client: socket.socket, broker: socket.socket, lost: set[bytes]) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(broker)) is not None:
                if frame[4:8] in lost:
                    self.unanswered()
                    break
                client.sendall(frame.replace(self._theirs, self._ours))
        for each in (client, broker):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _frame(source: socket.socket) -> bytes | None:
    """A length of 4 bytes and what it counts; None at the end of the stream."""
    head = _exactly(source, 4)
    body = head and _exactly(source, int.from_bytes(head, "big"))
    return head + body if head and body else None


def _exactly(source: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
