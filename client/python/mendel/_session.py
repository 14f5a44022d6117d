"""ONNX Runtime's interface over Mendel: `import mendel as onnxruntime` in a script that creates sessions and runs them."""
from __future__ import annotations

import collections
import ctypes
import enum
import json
import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from mendel import _library
from mendel._library import InvalidArgument
from mendel._plan import Plan
from mendel._runtime import LoadedPlan

_ONNX_TYPES = {
    "f32": "tensor(float)", "f16": "tensor(float16)", "bf16": "tensor(bfloat16)", "f64": "tensor(double)", "i8": "tensor(int8)",
    "u8": "tensor(uint8)", "i32": "tensor(int32)", "i64": "tensor(int64)", "bool": "tensor(bool)",
}
_PROVIDERS = ["MendelExecutionProvider", "CPUExecutionProvider"]
_COMPILED_SHAPES = 16  # plans that a session keeps


class GraphOptimizationLevel(enum.IntEnum):
    """Accepted and without effect."""
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Accepted and without effect."""
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """ONNX Runtime's options. `intra_op_num_threads` (0: physical cores) and the entry "mendel.budget" (seconds of search when a session
    is created, for models without symbolic dimensions; "0": none) have an effect; all others are accepted and have none."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.log_severity_level = 2
        self.enable_profiling = False
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self._entries: Dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]


class RunOptions:
    """Accepted and without effect."""


class NodeArg:
    """An input or output. `shape`: sizes, the names of symbolic dimensions, or None; `type`: e.g. "tensor(float)"."""

    def __init__(self, name: str, type: str, shape: List[Union[int, str, None]]):
        self.name, self.type, self.shape = name, type, shape

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What the model's file says of itself."""

    def __init__(self, facts: Mapping[str, Any]):
        self.producer_name = facts.get("producer_name", "")
        self.graph_name = facts.get("graph_name", "")
        self.description = facts.get("description", "")
        self.domain = facts.get("domain", "")
        self.version = facts.get("version", 0)
        self.custom_metadata_map: Dict[str, str] = dict(facts.get("metadata", {}))


class IOBinding:
    """Inputs and outputs of a run, bound to arrays in this machine's memory."""

    def __init__(self, session: "InferenceSession"):
        self._session = session
        self._inputs: Dict[str, Any] = {}
        self._outputs: "collections.OrderedDict[str, Any]" = collections.OrderedDict()
        self._results: List[Any] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self._inputs[name] = array

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Any = None,
                    buffer_ptr: Any = None) -> None:
        if device_type != "cpu" or buffer_ptr is not None:
            raise InvalidArgument(f"output '{name}' can only be bound to memory of the library's own on the device 'cpu'")
        self._outputs[name] = None

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()

    def copy_outputs_to_cpu(self) -> List[Any]:
        """Arrays of the last run, in the order of binding."""
        return list(self._results)

    def _run(self) -> None:
        self._results = self._session.run(list(self._outputs), self._inputs)


class InferenceSession:
    """A model (or a plan file) ready to run, with ONNX Runtime's interface. Threads may share it; its runs take place one after the other.

    A model is compiled as it is, with default algorithms: at once, or, with symbolic dimensions, at the first run of every new combination
    of input shapes (the last 16 are kept). A plan of `mendel.optimize` is faster: give its file's path.

    `path_or_bytes`: a path or bytes. `sess_options`: SessionOptions, or ONNX Runtime's own. `providers`: accepted; the CPU runs."""

    def __init__(self, path_or_bytes: Any, sess_options: Any = None, providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Mapping[Any, Any]]] = None, **_options: Any):
        self._c = _library.library()
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._threads = int(getattr(self._options, "intra_op_num_threads", 0) or 0)
        self._lock = threading.Lock()
        self._plans: "collections.OrderedDict[Tuple[Tuple[int, ...], ...], LoadedPlan]" = collections.OrderedDict()
        self._metadata: Dict[str, Any] = {}
        self._dynamic = False
        if isinstance(path_or_bytes, (str, os.PathLike)) and _is_plan(path_or_bytes):
            self._adopt(Plan.load(path_or_bytes).compile(self._threads))
            return
        self._model = _library.model_argument(path_or_bytes)
        text = ctypes.c_void_p()
        _library.check(self._c, self._c.mendel_describe_model(ctypes.byref(self._model), ctypes.byref(text)))
        facts = json.loads(_library.take_text(self._c, text))
        self._metadata = facts
        self._inputs = [_node_arg(value) for value in facts["inputs"]]
        self._outputs = [_node_arg(value) for value in facts["outputs"]]
        self._dynamic = any(not isinstance(size, int) for value in self._inputs for size in value.shape)
        if not self._dynamic:
            self._static = self._create(path_or_bytes)

    def _adopt(self, plan: LoadedPlan) -> None:
        self._static = plan
        self._inputs = [NodeArg(v.name, _ONNX_TYPES[v.dtype], list(v.shape)) for v in plan.inputs]
        self._outputs = [NodeArg(v.name, _ONNX_TYPES[v.dtype], list(v.shape)) for v in plan.outputs]

    def _create(self, model: Any) -> LoadedPlan:
        entries = getattr(self._options, "_entries", {})
        budget = float(entries.get("mendel.budget", "0"))
        if budget > 0:
            from mendel._plan import optimize

            return optimize(model, budget=budget, threads=self._threads or None, progress=False).compile(self._threads)
        return self._compile(None)

    def _compile(self, shapes: Optional[str]) -> LoadedPlan:
        options = _library.LoadOptions(ctypes.sizeof(_library.LoadOptions), self._threads, None)
        handle = ctypes.c_void_p()
        _library.check(self._c, self._c.mendel_compile_model(
            ctypes.byref(self._model), shapes.encode() if shapes else None, ctypes.byref(options), ctypes.byref(handle)))
        return LoadedPlan._of_handle(self._c, handle.value)

    def _plan_for(self, feed: Mapping[str, Any]) -> LoadedPlan:
        if not self._dynamic:
            return self._static
        missing = [value.name for value in self._inputs if value.name not in feed]
        if missing:
            raise InvalidArgument(f"input '{missing[0]}' is missing")
        key = tuple(tuple(feed[value.name].shape) for value in self._inputs)
        with self._lock:
            if key not in self._plans:
                shapes = _library.shapes_text({value.name: shape for value, shape in zip(self._inputs, key)})
                self._plans[key] = self._compile(shapes)
                if len(self._plans) > _COMPILED_SHAPES:
                    self._plans.popitem(last=False)
            self._plans.move_to_end(key)
            return self._plans[key]

    def get_inputs(self) -> List[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> List[NodeArg]:
        return list(self._outputs)

    def get_overridable_initializers(self) -> List[NodeArg]:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._metadata)

    def get_providers(self) -> List[str]:
        return list(_PROVIDERS)

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        return {provider: {} for provider in _PROVIDERS}

    def set_providers(self, providers: Optional[Sequence[Any]] = None, provider_options: Any = None) -> None:
        """Accepted and without effect."""

    def get_session_options(self) -> Any:
        return self._options

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: Any = None) -> List[Any]:
        """Arrays of the outputs `output_names` (None: all, in order), for `input_feed`: arrays by input name."""
        import numpy

        feed = {name: numpy.asarray(value) for name, value in input_feed.items()}
        unknown = sorted(set(feed) - {value.name for value in self._inputs})
        if unknown:
            inputs = ", ".join(f"'{value.name}'" for value in self._inputs)
            raise InvalidArgument(f"there is no input '{unknown[0]}' (the inputs are {inputs})")
        known = {value.name for value in self._outputs}
        names = list(output_names) if output_names else [value.name for value in self._outputs]
        for name in names:
            if name not in known:
                raise InvalidArgument(f"there is no output '{name}' (the outputs are {', '.join(repr(k) for k in sorted(known))})")
        results = self._plan_for(feed).run(feed)
        return [results[name] for name in names]

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        iobinding._run()


def _node_arg(facts: Mapping[str, Any]) -> NodeArg:
    return NodeArg(facts["name"], _ONNX_TYPES[facts["type"]], facts["shape"] if facts["shape"] is not None else [])


def _is_plan(path: Any) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(8) == b"MENDELPL"
    except OSError:
        return False  # the library says why


def get_available_providers() -> List[str]:
    return list(_PROVIDERS)


def get_device() -> str:
    return "CPU"
