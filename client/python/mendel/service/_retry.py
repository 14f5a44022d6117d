"""When a call is tried again: gRPC's rules (proposal A6) with the server's own wish; the same as the C++ client's.

UNAVAILABLE, and RESOURCE_EXHAUSTED with RetryInfo. The wait before attempt n is drawn from [0, min(0.25 * 2^(n-1), 8)] seconds;
RetryInfo is its lower bound. Every request of this package can be repeated without harm.
"""
from __future__ import annotations

import random
import time
from typing import Callable

from mendel.service._errors import MendelError

INITIAL = 0.25
LONGEST = 8.0
SHORTEST = 0.01


class Retrier:
    """State of one operation's attempts."""

    def __init__(self, give_up: float, sleep: Callable[[float], None] = time.sleep):
        self._give_up = give_up
        self._sleep = sleep
        self.progress()

    def progress(self) -> None:
        """Bytes or events arrived: the next failure is a first one."""
        self._failures = 0
        self._waited = 0.0

    def again(self, error: MendelError) -> None:
        """Waits, or raises `error` when it is not to be tried again."""
        full = error.code == "RESOURCE_EXHAUSTED" and error.retry_after is not None
        if not full and error.code != "UNAVAILABLE":
            raise error
        wait = random.uniform(0, min(INITIAL * 2**self._failures, LONGEST)) + max(0.0, error.retry_after or 0.0)
        if self._waited + wait > self._give_up:
            raise error
        self._failures += 1
        self._waited += max(wait, SHORTEST)
        self._sleep(max(wait, SHORTEST))
