"""Comparing two models."""
from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from mendel import _library
from mendel._plan import Plan, Shapes
from mendel._progress import ProgressArgument, Reporter


@dataclasses.dataclass(frozen=True)
class Witness:
    """Inputs on which the two models differ. `inputs`: arrays by the names of A, float64 where the input is a float (the value can be
    represented in the input's own type). `element`: the position in the output; `value_a` and `value_b`: both models' values there over the
    real numbers, each within its error (None: infinite or undefined)."""

    inputs: Dict[str, Any]
    element: Tuple[int, ...]
    value_a: Optional[float]
    value_b: Optional[float]
    error_a: Optional[float]
    error_b: Optional[float]


@dataclasses.dataclass(frozen=True)
class Region:
    """A box of an output: begin <= position < end. `status`: "wrong" (then with a witness) or "unproven" (then maybe with a reason)."""

    begin: Tuple[int, ...]
    end: Tuple[int, ...]
    status: str
    witness: Optional[Witness]
    reason: str

    @property
    def slices(self) -> Tuple[slice, ...]:
        """The box as an index of an array."""
        return tuple(slice(first, last) for first, last in zip(self.begin, self.end))


class Regions(Tuple[Region, ...]):
    """The boxes of one output."""

    shape: Tuple[int, ...]

    def mask(self) -> Any:
        """A boolean array of the output's shape: true in every box."""
        import numpy

        mask = numpy.zeros(self.shape, bool)
        for region in self:
            mask[region.slices] = True
        return mask


@dataclasses.dataclass(frozen=True)
class OutputVerdict:
    """One output. `regions_known`: the boxes are exact; else they only contain what differs."""

    name: str
    shape: Tuple[int, ...]
    elements: int
    wrong_elements: int
    regions_known: bool
    regions: Regions


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`verdict`: "equivalent", "equivalent-after-refit", "partial", "different" or "unproven". True in a condition when it is "equivalent".
    `bound_log2`: "equivalent" is wrong with probability 2**bound_log2 at most. `facts`: all of it, as `mendel verify --json` prints it."""

    verdict: str
    reason: str
    bound_log2: float
    outputs: Dict[str, OutputVerdict]
    facts: Dict[str, Any]

    def __bool__(self) -> bool:
        return self.verdict == "equivalent"

    @property
    def regions(self) -> Dict[str, Regions]:
        """The boxes by output name."""
        return {name: output.regions for name, output in self.outputs.items()}

    @property
    def witness(self) -> Optional[Witness]:
        """The first witness of all."""
        for output in self.outputs.values():
            for region in output.regions:
                if region.witness is not None:
                    return region.witness
        return None


def verify(a: Any, b: Any, *, shapes: Optional[Shapes] = None, weights: str = "exact", time_limit: Optional[float] = None,
           map: Optional[Mapping[str, str]] = None, outputs: Optional[Sequence[str]] = None, regions: bool = True,
           progress: ProgressArgument = None, **options: Any) -> Verdict:
    """Do two models compute the same function, and where do they differ?

    `a`, `b`: paths (of models or plans), bytes, onnx.ModelProto, or Plan. `shapes`: of inputs, by the names of A. `weights`: "exact" (the
    stored numbers) or "symbolic" (random tensors, equal by name). `time_limit`: seconds. `map`: names of A to names of B. `outputs`: compare
    only these. `regions`: find the wrong boxes. Other keywords are the options of `mendel verify`: tests=3, seed=2, fold_tolerance=16.

    Ctrl-C stops it (KeyboardInterrupt). A model that is malformed, unsupported or does not match raises Error."""
    c = _library.library()
    stop = _library.Stop(c)
    words = _library.option_words({
        **options, "weights": weights, "time_limit": None if time_limit is None else f"{float(time_limit):.3f}s",
        "no_regions": not regions, "map": [f"{mine}={other}" for mine, other in (map or {}).items()], "outputs": list(outputs or [])})
    if shapes:
        words.append(("--shapes=" + _library.shapes_text(shapes)).encode())
    reporter = Reporter(progress, stop)
    with tempfile.TemporaryDirectory(prefix="mendel-") as folder:
        words.append(b"--witness=" + os.fsencode(folder))
        arguments = [_argument(model, pathlib.Path(folder) / f"{k}.plan") for k, model in enumerate((a, b))]
        call = _library.call_argument(words, reporter.callback(), stop)

        def work() -> Tuple[int, Any]:
            text = ctypes.c_void_p()
            status = c.mendel_verify(ctypes.byref(arguments[0]), ctypes.byref(arguments[1]), ctypes.byref(call), ctypes.byref(text))
            return status, _library.take_text(c, text) if status == 0 else _library.last_error(c, status)

        (status, result), interrupted = _library.interruptible(work, stop)
        reporter.finish()
        if interrupted:
            raise KeyboardInterrupt
        if status != 0:
            raise result
        return _verdict(json.loads(result))


def _argument(model: Any, path: pathlib.Path) -> _library.Model:
    if isinstance(model, Plan):
        model.save(path)
        return _library.model_argument(path)
    return _library.model_argument(model)


def _witness(facts: Optional[Dict[str, Any]]) -> Optional[Witness]:
    import numpy

    if facts is None:
        return None
    inputs = {name: numpy.load(path) for name, path in facts.pop("inputs", {}).items()}
    return Witness(inputs, tuple(facts["element"]), facts["value_a"], facts["value_b"], facts["error_a"], facts["error_b"])


def _verdict(facts: Dict[str, Any]) -> Verdict:
    outputs = {}
    for output in facts["outputs"]:
        boxes: List[Region] = [
            Region(tuple(box["begin"]), tuple(box["end"]), box["status"], _witness(box.get("witness")), box.get("reason", ""))
            for box in output["boxes"]]
        regions = Regions(boxes)
        regions.shape = tuple(output["shape"])
        outputs[output["name"]] = OutputVerdict(
            output["name"], regions.shape, output["elements"], output["wrong_elements"], output["regions_known"], regions)
    if isinstance(facts.get("witness"), dict):
        facts["witness"].pop("inputs", None)  # files that are gone; see Verdict.witness
    return Verdict(facts["verdict"], facts["reason"], facts["bound_log2"], outputs, facts)
