"""Optimizing, and plans: what it makes."""
from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from mendel import _library
from mendel._library import PathLike
from mendel._progress import ProgressArgument, Reporter
from mendel._runtime import LoadedPlan, ValueInfo

Shapes = Mapping[str, Sequence[int]]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One applied mutant. `claim`: "exact" or "partial"; times are milliseconds of the place alone; `corrected` has an entry for
    every output with wrong boxes (output, shape, elements, wrong_elements, boxes as text)."""

    rule: str
    claim: str
    where: str
    original_ms: float
    mutant_ms: float
    choices: Dict[str, int]
    corrected: List[Dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What was proven of the plan: every output element is the model's own expression, wrong with probability 2**bound_log2 at most."""

    bound_log2: float
    tests: int
    elements: int
    segments: int
    degree: int


class Plan:
    """A certified plan of a model, or a bundle of plans for several input shapes. Threads may share it.

    `facts`: everything known of each member (a list of dicts, as `mendel explain --json`); `report`: what `mendel optimize --json` says,
    None for a plan that was read. The properties below are those of member 0."""

    def __init__(self, c: ctypes.CDLL, handle: int):
        self._c, self._handle = c, handle
        self._lock = threading.Lock()
        self._loaded: Optional[LoadedPlan] = None
        text = ctypes.c_void_p()
        _library.check(c, c.mendel_program_facts(handle, ctypes.byref(text)))
        facts = json.loads(_library.take_text(c, text))
        self.facts: List[Dict[str, Any]] = facts["members"]
        self.report: Optional[Dict[str, Any]] = facts["report"]

    @classmethod
    def load(cls, path: PathLike) -> "Plan":
        """Reads a plan file. The file must not change while the plan lives."""
        c = _library.library()
        handle = ctypes.c_void_p()
        _library.check(c, c.mendel_program_read(os.fsencode(path), ctypes.byref(handle)))
        return cls(c, handle.value or 0)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._c.mendel_program_free(self._handle)

    def __repr__(self) -> str:
        return (f"<mendel.Plan of {self.facts[0]['model']}: {self.baseline_ms:.3f} -> {self.plan_ms:.3f} ms, {self.speedup:.2f}x, "
                f"{len(self.mutants)} mutants>")

    @property
    def baseline_ms(self) -> float:
        """Median milliseconds of the model with default algorithms, measured by the search."""
        return float(self.facts[0]["baseline_ms"])

    @property
    def plan_ms(self) -> float:
        """Median milliseconds of the plan, measured by the search."""
        return float(self.facts[0]["plan_ms"])

    @property
    def speedup(self) -> float:
        """baseline_ms / plan_ms."""
        return float(self.facts[0]["speedup"])

    @property
    def mutants(self) -> List[Mutant]:
        return [Mutant(rule=m["rule"], claim=m["claim"], where=m["where"], original_ms=m["original_ms"], mutant_ms=m["mutant_ms"],
                       choices=dict(m.get("choices", {})), corrected=list(m.get("mended", []))) for m in self.facts[0]["mutants"]]

    @property
    def certificate(self) -> Optional[Certificate]:
        """None for a plan without one."""
        facts = self.facts[0]["certificate"]
        return None if facts is None else Certificate(**facts)

    @property
    def inputs(self) -> List[ValueInfo]:
        """Names, types and shapes; compiles the plan."""
        return self._compiled().inputs

    @property
    def outputs(self) -> List[ValueInfo]:
        return self._compiled().outputs

    def run(self, inputs: Mapping[str, Any], outputs: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Runs the plan (LoadedPlan.run): arrays by input name to arrays by output name. The first run compiles it."""
        return self._compiled().run(inputs, outputs)

    def compile(self, threads: int = 0, affinity: Optional[str] = None) -> LoadedPlan:
        """A compiled plan of its own, for `threads` threads (0: as many as the plan was tuned for), which run where `affinity` says:
        "none", "cores", or a list of CPUs such as "0,2-3"."""
        options = _library.LoadOptions(ctypes.sizeof(_library.LoadOptions), threads, affinity.encode() if affinity else None)
        handle = ctypes.c_void_p()
        _library.check(self._c, self._c.mendel_program_compile(self._handle, ctypes.byref(options), ctypes.byref(handle)))
        return LoadedPlan._of_handle(self._c, handle.value)

    def save(self, path: PathLike) -> None:
        """Writes the plan file, which `Plan.load`, `load_plan` and the command `mendel` read."""
        _library.check(self._c, self._c.mendel_program_write(self._handle, os.fsencode(path)))

    def export_onnx(self, path: PathLike, member: int = 0) -> None:
        """Writes the optimized graph as an ONNX model of standard operators."""
        _library.check(self._c, self._c.mendel_program_export(self._handle, member, os.fsencode(path)))

    def _compiled(self) -> LoadedPlan:
        with self._lock:
            if self._loaded is None:
                self._loaded = self.compile()
            return self._loaded


def optimize(model: Any, *, shapes: Union[None, Shapes, Sequence[Shapes]] = None, budget: Optional[float] = None,
             threads: Optional[int] = None, progress: ProgressArgument = None, **options: Any) -> Plan:
    """Makes a faster, certified plan of an ONNX model. Ctrl-C ends the search and keeps the best plan so far.

    `model`: a path, bytes, or an onnx.ModelProto. `shapes`: input shapes that fix symbolic dimensions, {"input": (1, 3, 224, 224)}; a list
    of them makes a bundle. `budget`: seconds before the certificate (0: no search; None: by the model's arithmetic). `threads` of the plan
    (None: physical cores). `progress`: a function of a dict, True, False, or None (a line on a terminal or in a notebook). Other keywords are
    the options of `mendel optimize`: numerics="strict", seed=2, cache="profiles", disable=["merge_convs"].

    Raises InvalidArgument, NotFound or Unsupported with the sentence of the command; KeyboardInterrupt when Ctrl-C comes before the search."""
    c = _library.library()
    stop = _library.Stop(c)
    words = _library.option_words({**options, "threads": threads, "budget": None if budget is None else f"{float(budget):.3f}s"})
    for one in [shapes] if isinstance(shapes, Mapping) else shapes or []:
        words.append(("--shapes=" + _library.shapes_text(one)).encode())
    argument = _library.model_argument(model)
    reporter = Reporter(progress, stop)
    call = _library.call_argument(words, reporter.callback(), stop)

    def work() -> Tuple[int, Any]:
        handle = ctypes.c_void_p()
        status = c.mendel_optimize(ctypes.byref(argument), ctypes.byref(call), ctypes.byref(handle))
        return status, handle.value if status == 0 else _library.last_error(c, status)

    (status, result), interrupted = _library.interruptible(work, stop)
    if status == 0:
        plan = Plan(c, result)
        reporter.finish()
        return plan
    reporter.finish()
    if status == _library.STOPPED and interrupted:
        raise KeyboardInterrupt
    raise result
