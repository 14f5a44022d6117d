"""What goes wrong, as exceptions."""
from __future__ import annotations

from typing import Optional


class MendelError(Exception):
    """A call that failed for good. `code` is gRPC's name of the status, e.g. "NOT_FOUND"."""

    def __init__(self, code: str, message: str, retry_after: Optional[float] = None):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after = retry_after


class JobFailed(MendelError):
    """A job that ended without a result: FAILED with its error's code, or CANCELLED. `job` is its name."""

    def __init__(self, job: str, code: str, message: str):
        super().__init__(code, f"{job}: {message}")
        self.job = job
