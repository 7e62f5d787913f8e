"""Work behind: in order, bounded, and its errors are not lost."""

import threading
from functools import partial

import pytest

from s3lake.records.encode.background_work import BackgroundWork


def test_who_gives_more_than_may_wait_waits() -> None:
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


def test_what_goes_wrong_is_raised_by_what_is_given_after_it_or_at_the_end() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with BackgroundWork(0) as behind:
        behind.do(fail, 1)
        with pytest.raises(ValueError, match="broken"):
            behind.do(bool, 1)
        behind.do(fail, 1)
        with pytest.raises(ValueError, match="broken"):
            behind.settle()


def test_what_waits_at_the_end_is_not_done() -> None:
    held, done = threading.Event(), list[int]()
    with BackgroundWork(10) as behind:
        behind.do(held.wait, 1)
        behind.do(partial(done.append, 1), 1)
        threading.Timer(0.1, held.set).start()
    assert done == []
