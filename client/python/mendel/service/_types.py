"""What the client returns: plain values, so that callers need no protobuf."""
from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any, Dict, List, Optional, Tuple

from mendel.service._messages import enum_name


def _time(message: Any, field: str) -> Optional[datetime.datetime]:
    if not message.HasField(field):
        return None
    stamp = getattr(message, field)
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return start + datetime.timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)


def _state(number: int) -> str:
    return enum_name("mendel.v1.JobState", number).replace("JOB_STATE_", "")


@dataclasses.dataclass(frozen=True)
class Model:
    """A stored model: its name (`models/{sha256}`), and its files as (path, sha256, bytes)."""

    name: str
    files: List[Tuple[str, str, int]]
    main_file: str

    @classmethod
    def of(cls, message: Any) -> "Model":
        return cls(message.name, [(f.path, f.digest.sha256, f.digest.size_bytes) for f in message.files], message.main_file)


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a job is. `time_left`: seconds of the budget, None in phases without one."""

    phase: str
    detail: str
    candidates: int
    candidates_per_second: float
    best_speedup: float
    time_left: Optional[float]

    @classmethod
    def of(cls, message: Any) -> "Progress":
        left = message.time_left.seconds + 1e-9 * message.time_left.nanos if message.HasField("time_left") else None
        return cls(message.phase, message.detail, message.candidates, message.candidates_per_second, message.best_speedup, left)


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened to a job: exactly one of `state`, `progress`, `warning` is set."""

    sequence: int
    time: Optional[datetime.datetime]
    state: Optional[str] = None
    progress: Optional[Progress] = None
    warning: Optional[str] = None

    @classmethod
    def of(cls, message: Any) -> "Event":
        kind = message.WhichOneof("event")
        return cls(
            message.sequence,
            _time(message, "time"),
            _state(message.state) if kind == "state" else None,
            Progress.of(message.progress) if kind == "progress" else None,
            message.warning if kind == "warning" else None,
        )


@dataclasses.dataclass(frozen=True)
class Box:
    """Half-open ranges, one a dimension."""

    begin: Tuple[int, ...]
    end: Tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class OutputVerdict:
    """The answer for one output; `boxes` cover exactly the wrong elements."""

    name: str
    shape: Tuple[int, ...]
    elements: int
    wrong_elements: int
    boxes: List[Box]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verifier's answer. `kind`: equivalent, equivalent-after-refit, partial, different or unproven. `report`: the JSON of
    `mendel verify --json`."""

    kind: str
    bound_log2: float
    tests: int
    primes: List[int]
    outputs: List[OutputVerdict]
    reason: str
    report: Dict[str, Any]

    def __bool__(self) -> bool:
        return self.kind == "equivalent"

    @classmethod
    def of(cls, message: Any) -> "Verdict":
        outputs = [
            OutputVerdict(o.name, tuple(o.shape), o.elements, o.wrong_elements, [Box(tuple(b.begin), tuple(b.end)) for b in o.boxes])
            for o in message.outputs
        ]
        kind = enum_name("mendel.v1.Verdict.Kind", message.kind).replace("KIND_", "").replace("_", "-").lower()
        report = json.loads(message.json) if message.json else {}
        return cls(kind, message.bound_log2, message.tests, list(message.primes), outputs, message.reason, report)


@dataclasses.dataclass(frozen=True)
class Job:
    """A job. `state`: PENDING, RUNNING, CANCELLING, SUCCEEDED, FAILED or CANCELLED."""

    name: str
    state: str
    client: str
    priority: int
    created: Optional[datetime.datetime]
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    plan: str
    verdict: Optional[Verdict]
    error: Optional[str]
    error_code: int
    last_sequence: int
    attempts: int
    queue_position: int
    progress: Optional[Progress]

    @property
    def done(self) -> bool:
        return self.state in ("SUCCEEDED", "FAILED", "CANCELLED")

    @classmethod
    def of(cls, message: Any) -> "Job":
        return cls(
            message.name, _state(message.state), message.client, message.priority,
            _time(message, "create_time"), _time(message, "start_time"), _time(message, "end_time"), message.plan,
            Verdict.of(message.verdict) if message.HasField("verdict") else None,
            message.error.message if message.HasField("error") else None,
            message.error.code if message.HasField("error") else 0,
            message.last_sequence, message.attempts, message.queue_position,
            Progress.of(message.progress) if message.HasField("progress") else None,
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """A stored plan: what was measured and what is certified. `weights`: "symbolic" or "exact". `unmeasured`: it was made for a device
    that the worker did not have, its times are predicted."""

    name: str
    blob: str
    size_bytes: int
    model: str
    job: str
    created: Optional[datetime.datetime]
    device: str
    isa: str
    threads: int
    baseline_ms: float
    plan_ms: float
    speedup: float
    bound_log2: float
    weights: str
    max_relative_error: float
    stop_reason: str
    mutants: Dict[str, int]
    unmeasured: bool = False

    @classmethod
    def of(cls, m: Any) -> "Plan":
        return cls(
            m.name, m.blob, m.size_bytes, m.model, m.job, _time(m, "create_time"), m.device, m.isa, m.threads, m.baseline_ms, m.plan_ms,
            m.speedup, m.bound_log2, m.weights, m.max_relative_error, m.stop_reason, dict(m.mutants),
            m.unmeasured,
        )
