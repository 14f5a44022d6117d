"""ONNX Runtime's interface over Mendel: `import mendel as onnxruntime` in a script that creates sessions and runs them."""
from __future__ import annotations

import collections
import ctypes
import enum
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from mendel import _library
from mendel._library import InvalidArgument
from mendel._plan import Plan, Shapes, optimize
from mendel._runtime import LoadedPlan

_ONNX_TYPES = {
    "f32": "tensor(float)", "f16": "tensor(float16)", "bf16": "tensor(bfloat16)", "f64": "tensor(double)", "i8": "tensor(int8)",
    "u8": "tensor(uint8)", "i32": "tensor(int32)", "i64": "tensor(int64)", "bool": "tensor(bool)",
    "i16": "tensor(int16)", "u16": "tensor(uint16)", "u32": "tensor(uint32)", "u64": "tensor(uint64)",
    "f8e4m3fn": "tensor(float8e4m3fn)", "f8e4m3fnuz": "tensor(float8e4m3fnuz)", "f8e5m2": "tensor(float8e5m2)",
    "f8e5m2fnuz": "tensor(float8e5m2fnuz)",
}
_PROVIDERS = ["MendelExecutionProvider", "CPUExecutionProvider"]


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
    """ONNX Runtime's options. These have an effect, all others are accepted and have none: `intra_op_num_threads` (0: one for
    each physical core, or as many as a plan file was tuned for);
    the entries "mendel.budget" (seconds of search when a session is created, for models without symbolic dimensions; "0": none) and, for
    models with symbolic dimensions, "mendel.plans" and "mendel.plan_bytes" (bounds of the plans that are kept; "0": 16 and 2**30)."""

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
    of input shapes (the last 16 are kept; `optimize` searches for shapes later). A plan of `mendel.optimize` is faster: give its file's path.

    `path_or_bytes`: a path or bytes. `sess_options`: SessionOptions, or ONNX Runtime's own. `providers`: accepted; the CPU runs."""

    def __init__(self, path_or_bytes: Any, sess_options: Any = None, providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Mapping[Any, Any]]] = None, **_options: Any):
        self._c = _library.library()
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._threads = int(getattr(self._options, "intra_op_num_threads", 0) or 0)
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
        self._dynamic = any(value["shape"] is None or not all(isinstance(size, int) for size in value["shape"])
                            for value in facts["inputs"])
        self._source = path_or_bytes
        self._plan = self._open() if self._dynamic else self._create(path_or_bytes)

    def _adopt(self, plan: LoadedPlan) -> None:
        self._plan = plan
        self._inputs = [NodeArg(v.name, _ONNX_TYPES[v.dtype], list(v.shape)) for v in plan.inputs]
        self._outputs = [NodeArg(v.name, _ONNX_TYPES[v.dtype], list(v.shape)) for v in plan.outputs]

    def _create(self, model: Any) -> LoadedPlan:
        entries = getattr(self._options, "_entries", {})
        budget = float(entries.get("mendel.budget", "0"))
        if budget > 0:
            return optimize(model, budget=budget, threads=self._threads or None, progress=False).compile(self._threads)
        options = _library.LoadOptions(ctypes.sizeof(_library.LoadOptions), self._threads, None)
        handle = ctypes.c_void_p()
        _library.check(self._c, self._c.mendel_compile_model(
            ctypes.byref(self._model), None, ctypes.byref(options), ctypes.byref(handle)))
        return LoadedPlan._of_handle(self._c, handle.value)

    def _open(self) -> LoadedPlan:
        """The model with open dimensions: the library makes the plan of new shapes and keeps the last ones."""
        entries = getattr(self._options, "_entries", {})
        options = _library.LoadOptions(ctypes.sizeof(_library.LoadOptions), self._threads, None)
        limits = _library.DynamicLimits(ctypes.sizeof(_library.DynamicLimits), int(entries.get("mendel.plans", "0")),
                                        int(entries.get("mendel.plan_bytes", "0")))
        handle = ctypes.c_void_p()
        _library.check(self._c, self._c.mendel_open_model(
            ctypes.byref(self._model), ctypes.byref(options), ctypes.byref(limits), ctypes.byref(handle)))
        return LoadedPlan._dynamic(self._c, handle.value, {value["name"]: value["type"] for value in self._metadata["inputs"]})

    def optimize(self, shapes: Union[Shapes, Sequence[Shapes]], **options: Any) -> Plan:
        """Searches plans for these input shapes (mendel.optimize), which the session uses from now on where inputs have them. It runs
        meanwhile with what it has: call this from another thread. For models with symbolic dimensions."""
        if not self._dynamic:
            raise InvalidArgument("the model has no symbolic dimensions: give mendel.optimize(model) or the entry \"mendel.budget\"")
        plan = optimize(self._source, shapes=shapes, **{"threads": self._threads or None, "progress": False, **options})
        with self._plan._lock:
            _library.check(self._c, self._c.mendel_adopt(self._plan._handle, plan._handle))
        return plan

    def plan_cache(self) -> Dict[str, int]:
        """Counts of a model with symbolic dimensions: plans and bytes kept now; runs that found their plan (hits), plans made, dropped."""
        use = _library.DynamicUse(ctypes.sizeof(_library.DynamicUse))
        with self._plan._lock:
            _library.check(self._c, self._c.mendel_dynamic_use_of(self._plan._handle, ctypes.byref(use)))
        return {"plans": use.plans, "bytes": use.bytes, "hits": use.hits, "made": use.made, "dropped": use.dropped}

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
        results = self._plan.run(feed)
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


def disable_telemetry_events() -> None:
    """Without effect: the library sends nothing."""


def enable_telemetry_events() -> None:
    """Without effect: the library sends nothing."""


def set_default_logger_severity(severity: int) -> None:
    """Accepted and without effect."""
