"""Locks that an interrupt does not leave locked; tests/autograd/test_parallel.py runs into many."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from undertow.backends.locks import Lock, _Lock


@pytest.mark.skipif(not hasattr(threading.RLock(), "_recursion_count"), reason="3.11 is older")
@pytest.mark.parametrize("kind", [Lock, _Lock])
@pytest.mark.parametrize("held", [0, 1, 2])
def test_an_interrupt_after_any_call(kind: Any, held: int) -> None:
    """Whatever has just been called when it arrives, the lock is as often held as before."""
    lock = kind()
    for _ in range(held):
        lock.acquire()
    for k in range(1, 20):
        left = k

        def interrupt(frame: Any, event: str, arg: Any) -> None:
            nonlocal left
            if event == "c_return":
                left -= 1
                if not left:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        try:
            sys.setprofile(interrupt)
            with lock:
                assert lock._recursion_count() == held + 1
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert lock._recursion_count() == held
    assert left > 0, "more calls than interrupts"


def test_others_wait() -> None:
    lock, order = Lock(), []

    def other() -> None:
        with lock:
            order.append("other")

    with lock, lock:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]
