"""torch.compile(model, backend="mendel"): inference of PyTorch models on the processor.

A graph that Dynamo captured is exported to ONNX by torch's exporter and compiled once for every combination of input shapes. Weights are
constants of a plan: when a weight changes, the plan is made anew. Graphs that Mendel cannot run stay with PyTorch, which one warning says."""
from __future__ import annotations

import collections
import os
import re
import tempfile
import threading
import warnings
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from mendel._library import Error
from mendel._session import InferenceSession, SessionOptions

_MOST_PLANS = 64  # also those of equal layers that share a graph
_LARGEST_BYTES = 1 << 30  # weights beyond are exported beside the model: a protobuf message ends at 2^31
_LARGEST_ERROR = 1e-2  # of a plan, relative to the largest element of PyTorch's result

_OPTIONS = ("budget",)
_DTYPES = tuple(f"torch.{name}" for name in ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool", "int16"))


class FallbackWarning(UserWarning):
    """A graph, or part of a model, stays with PyTorch."""


class _Unsuited(Exception):
    """Why a graph stays with PyTorch."""


def backend(graph: Any, example_inputs: Sequence[Any], *, options: Optional[Mapping[str, Any]] = None, **_kwargs: Any) -> Callable[..., Any]:
    """The backend "mendel" of torch.compile. `options`: {"budget": seconds of search for each plan}; without it a plan has default
    algorithms and no search."""
    import torch

    unknown = sorted(set(options or {}) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"backend \"mendel\": there is no option '{unknown[0]}' (the options are {', '.join(map(repr, _OPTIONS))})")
    if torch.is_grad_enabled() and any(getattr(value, "requires_grad", False) for value in [*example_inputs, *graph.parameters()]):
        _warn("it is for inference only, and gradients are wanted here: call the model under torch.inference_mode() or torch.no_grad()")
        return graph.forward
    compiled = _Compiled(graph, [_is_weight(torch, value) for value in example_inputs], float((options or {}).get("budget", 0)))
    return torch._dynamo.disable(compiled)


def _warn(reason: str) -> None:
    warnings.warn(f"torch.compile(backend=\"mendel\"): {reason}; this graph runs in PyTorch", FallbackWarning, stacklevel=3)


def _is_weight(torch: Any, value: Any) -> bool:
    """Dynamo passes parameters and buffers as inputs, and marks their addresses as static."""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


class _Plan:
    """A session for one combination of shapes and weights. `names`: an input's name and number; `outputs`: _Output or _Constant."""

    def __init__(self, session: Any, names: List[Tuple[str, int]], outputs: List[Any], weights: List[Any]):
        self.session, self.names, self.outputs = session, names, outputs
        self.weights = weights  # kept, so that no other tensor gets their addresses


class _Constant:
    def __init__(self, value: Any):
        self.value = value


class _Output:
    def __init__(self, number: int, dtype: Any):
        self.number, self.dtype = number, dtype


class _Compiled:
    def __init__(self, graph: Any, weights: List[bool], budget: float):
        self._graph, self._weights, self._budget = graph, weights, budget
        self._plans: "collections.OrderedDict[Any, _Plan]" = collections.OrderedDict()
        self._refused = False
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        if self._refused:
            return self._graph(*inputs)
        key = self._key(inputs)
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                return self._first(key, inputs)
            self._plans.move_to_end(key)
        return self._run(plan, inputs)

    def _key(self, inputs: Sequence[Any]) -> Any:
        """Guards of a plan: shapes and dtypes, numbers, and the weights' addresses and versions."""
        parts: List[Any] = []
        for weight, value in zip(self._weights, inputs):
            if weight:
                parts.append((value.data_ptr(), _version(value)))
            elif hasattr(value, "shape"):
                parts.append((tuple(int(size) for size in value.shape), value.dtype, str(value.device)))
            else:
                parts.append(value if isinstance(value, (bool, float, str)) or value is None else int(value))
        for value in [*self._graph.parameters(), *self._graph.buffers()]:
            parts.append((value.data_ptr(), _version(value)))
        return tuple(parts)

    def _first(self, key: Any, inputs: Sequence[Any]) -> Any:
        """PyTorch's own result, and a plan for the next time."""
        import torch

        versions = [_version(value) for value in inputs]
        copies = [value.clone() if _is_unversioned(value) and not weight else None for weight, value in zip(self._weights, inputs)]
        results = self._graph(*inputs)
        try:
            same = all(copy is None or torch.equal(copy, value) for copy, value in zip(copies, inputs))
            if not same or versions != [_version(value) for value in inputs]:
                raise _Unsuited("the graph changes one of its inputs in place")
            plan = self._make(inputs, results)
        except (_Unsuited, Error) as error:
            self._refused = True
            self._plans.clear()
            _warn(str(error))
            return results
        self._plans[key] = plan
        while len(self._plans) > _MOST_PLANS:
            self._plans.popitem(last=False)
        return results

    def _make(self, inputs: Sequence[Any], results: Sequence[Any]) -> _Plan:
        import torch

        for value in inputs:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                raise _Unsuited(f"an input is on the device '{value.device}', and plans of this backend run on 'cpu'")
            if isinstance(value, torch.Tensor) and str(value.dtype) not in _DTYPES:
                raise _Unsuited(f"an input has the dtype {value.dtype} (plans have {', '.join(_DTYPES)})")
        if any(weight and _is_unversioned(value) for weight, value in zip(self._weights, inputs)):
            raise _Unsuited("a weight was made under torch.inference_mode(), where its changes leave no mark: make the model outside")
        _check_aliases(torch, inputs, results)
        free = [k for k, weight in enumerate(self._weights) if not weight and isinstance(inputs[k], torch.Tensor)]
        session = _export(torch, _bound(torch, self._graph, inputs, free), [inputs[k] for k in free], self._budget)
        known = {value.name for value in session.get_inputs()}
        names = [(f"input{number}", k) for number, k in enumerate(free) if f"input{number}" in known]
        outputs: List[Any] = []
        count = 0
        for result in results:
            if isinstance(result, torch.Tensor):
                outputs.append(_Output(count, result.dtype))
                count += 1
            else:
                outputs.append(_Constant(result))
        if count != len(session.get_outputs()):
            raise _Unsuited(f"the exported model has {len(session.get_outputs())} outputs where the graph has {count}")
        plan = _Plan(session, names, outputs, [value for weight, value in zip(self._weights, inputs) if weight])
        _check_numbers(torch, results, self._run(plan, inputs))
        return plan

    @staticmethod
    def _run(plan: _Plan, inputs: Sequence[Any]) -> List[Any]:
        import torch

        arrays = plan.session.run(None, {name: _to_numpy(torch, inputs[k]) for name, k in plan.names})
        return [output.value if isinstance(output, _Constant) else _from_numpy(torch, arrays[output.number], output.dtype)
                for output in plan.outputs]


def _to_numpy(torch: Any, value: Any) -> Any:
    """NumPy has no bfloat16: a plan takes and gives the bits as uint16."""
    value = value.detach().contiguous()
    return value.view(torch.int16).numpy().view("uint16") if value.dtype == torch.bfloat16 else value.numpy()


def _from_numpy(torch: Any, array: Any, dtype: Any) -> Any:
    return torch.from_numpy(array.view("int16")).view(torch.bfloat16) if dtype == torch.bfloat16 else torch.from_numpy(array)


def _is_unversioned(value: Any) -> bool:
    """Tensors that were made under torch.inference_mode() do not count their changes."""
    return hasattr(value, "is_inference") and bool(value.is_inference())


def _version(value: Any) -> int:
    return 0 if _is_unversioned(value) else int(getattr(value, "_version", 0))


def _check_aliases(torch: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """A plan's outputs are arrays of their own: a view of an input would not stay one."""
    storages = {value.untyped_storage().data_ptr() for value in inputs if isinstance(value, torch.Tensor)} - {0}
    if any(isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() in storages for result in results):
        raise _Unsuited("one of the graph's outputs is a view of an input")


def _check_numbers(torch: Any, wanted: Sequence[Any], have: Sequence[Any]) -> None:
    """Once a plan: an export that means something else is not used."""
    for number, (a, b) in enumerate(zip(wanted, have)):
        if not isinstance(a, torch.Tensor):
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            raise _Unsuited(f"output {number} of the exported model is {b.dtype}{list(b.shape)} where PyTorch has {a.dtype}{list(a.shape)}")
        if a.numel() == 0 or not a.is_floating_point():
            continue
        x, y = a.detach().double(), b.double()
        scale = float(x.abs().nan_to_num(0, 0, 0).max()) or 1.0
        error = float((x - y).abs().nan_to_num(0, 0, 0).max())
        if error > _LARGEST_ERROR * scale:
            raise _Unsuited(f"output {number} differs from PyTorch's by {error / scale:.1e} of its largest element")


def _bound(torch: Any, graph: Any, inputs: Sequence[Any], free: List[int]) -> Any:
    """A module of the inputs `free` alone: it shares the storage of the weights, and numbers are constants."""

    class Bound(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph = graph
            self.places = {k: f"weight{k}" for k, value in enumerate(inputs) if isinstance(value, torch.Tensor) and k not in free}
            for k, name in self.places.items():
                self.register_buffer(name, inputs[k].detach())

        def forward(self, *given: Any) -> Any:
            values = [getattr(self, self.places[k]) if k in self.places else value for k, value in enumerate(inputs)]
            for k, value in zip(free, given):
                values[k] = value
            return tuple(value for value in self.graph(*values) if isinstance(value, torch.Tensor))

    return Bound().eval()


def _export(torch: Any, module: Any, inputs: List[Any], budget: float) -> Any:
    names = [f"input{k}" for k in range(len(inputs))]
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(module, tuple(inputs), None, dynamo=True, verbose=False, input_names=names)
    except Exception as error:  # torch's exporter raises many kinds
        raise _Unsuited(f"torch's exporter refuses it: {_export_reason(error)}") from error
    options = SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    if budget > 0:
        options.add_session_config_entry("mendel.budget", str(budget))
    size = sum(value.numel() * value.element_size() for value in module.buffers())
    if size < _LARGEST_BYTES:
        return InferenceSession(program.model_proto.SerializeToString(), options)
    with tempfile.TemporaryDirectory(prefix="mendel-torch-") as folder:  # the library's mapping of a file outlives its name
        path = os.path.join(folder, "model.onnx")
        program.save(path, external_data=True)
        return InferenceSession(path, options)


def _export_reason(error: BaseException) -> str:
    """The operator that the exporter names, or the last line of its innermost reason."""
    reasons: List[str] = []
    cause: Optional[BaseException] = error
    while cause is not None and len(reasons) < 20:
        reasons.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    for reason in reasons:
        operator = re.search(r"OpOverload\(op='([\w.]+)'|(aten[.:]+[\w.]+)", reason)
        if operator and "No " in reason:
            return f"operator '{operator.group(1) or operator.group(2)}' has no form in ONNX"
    lines = [line.strip() for reason in reversed(reasons) for line in reason.splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
