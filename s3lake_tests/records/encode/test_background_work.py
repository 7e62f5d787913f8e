"""Work behind: in order, bounded, and its errors are not lost."""

import threading
from functools import partial

import pytest

from s3lake.records.encode.background_work import BackgroundWork


def test_a_caller_waits_when_too_much_work_is_waiting() -> None:
    held, taken = threading.Event(), list[int]()
    with BackgroundWork(2) as behind:

        def give() -> None:
            for number in range(4):
                behind.do(held.wait, 1)
                taken.append(number)

        giving = threading.Thread(target=give)
        giving.start()
        giving.join(0.2)
        assert giving.is_alive()
        assert taken == [0, 1]
        held.set()
        giving.join()


def test_an_error_of_a_call_is_raised_by_the_next_call_or_at_the_end() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with BackgroundWork(0) as behind:
        behind.do(fail, 1)
        with pytest.raises(ValueError, match="broken"):
            behind.do(bool, 1)
        behind.do(fail, 1)
        with pytest.raises(ValueError, match="broken"):
            behind.settle()


def test_waiting_work_is_not_done_when_the_block_fails() -> None:
    held, done = threading.Event(), list[int]()
    with BackgroundWork(10) as behind:
        behind.do(held.wait, 1)
        behind.do(partial(done.append, 1), 1)
        threading.Timer(0.1, held.set).start()
    assert done == []
