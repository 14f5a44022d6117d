"""Plans run in this process, through Mendel's C interface (libmendel.so, runtime/mendel.h)."""
from __future__ import annotations

import ctypes
import ctypes.util
import dataclasses
import os
import pathlib
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

PathLike = Union[str, "os.PathLike[str]"]

# mendel_dtype -> (name, NumPy's type). NumPy has no bfloat16: its bits travel as uint16.
_DTYPES: List[Tuple[str, str]] = [
    ("f32", "float32"), ("f16", "float16"), ("bf16", "uint16"), ("f64", "float64"), ("i8", "int8"), ("u8", "uint8"),
    ("i32", "int32"), ("i64", "int64"), ("bool", "bool"),
]
_INSTALLED = ("/opt/mendel/lib/libmendel.so.0", "/usr/local/lib/libmendel.so.0", "/usr/lib/libmendel.so.0")


class PlanError(RuntimeError):
    """What the library refused, in its words: a plan for another machine or version, a wrong input, a missing file."""


class _Value(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
    ]


@dataclasses.dataclass(frozen=True)
class ValueInfo:
    """One input or output. `dtype` is Mendel's name, `numpy_dtype` the type of its arrays (bf16: uint16, the bits)."""

    name: str
    dtype: str
    numpy_dtype: str
    shape: Tuple[int, ...]


def _open(library: Optional[PathLike]) -> ctypes.CDLL:
    explicit = library or os.environ.get("MENDEL_LIBRARY")
    beside = pathlib.Path(__file__).with_name("libmendel.so.0")
    candidates = [str(explicit)] if explicit else [str(beside), *_INSTALLED, ctypes.util.find_library("mendel") or ""]
    for candidate in candidates:
        if not explicit and not (candidate and (os.path.exists(candidate) or "/" not in candidate)):
            continue
        try:
            return _declare(ctypes.CDLL(candidate))
        except OSError as error:
            raise PlanError(f"cannot load {candidate}: {error}") from None
    raise PlanError("libmendel.so was not found: give its path (library=..., MENDEL_LIBRARY) or install Mendel")


def _declare(c: ctypes.CDLL) -> ctypes.CDLL:
    pointers = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in [
        ("mendel_version", ctypes.c_char_p, []),
        ("mendel_last_error", ctypes.c_char_p, []),
        ("mendel_load", ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]),
        ("mendel_free", None, [ctypes.c_void_p]),
        ("mendel_input_count", ctypes.c_int, [ctypes.c_void_p]),
        ("mendel_output_count", ctypes.c_int, [ctypes.c_void_p]),
        ("mendel_input", ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Value)]),
        ("mendel_output", ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Value)]),
        ("mendel_run", ctypes.c_int, [ctypes.c_void_p, pointers, pointers]),
    ]:
        function = getattr(c, name)
        function.restype, function.argtypes = result, arguments
    return c


class LoadedPlan:
    """A plan ready to run. One run at a time (a lock sees to it); the interpreter's lock is released meanwhile. Load the plan once a
    thread to run side by side."""

    def __init__(self, path: PathLike, threads: int = 0, library: Optional[PathLike] = None):
        self._handle: Optional[int] = None
        self._c = _open(library)
        self._lock = threading.Lock()
        self._handle = self._c.mendel_load(os.fsencode(path), threads)
        if not self._handle:
            raise self._error()
        self.inputs = self._values(self._c.mendel_input_count, self._c.mendel_input)
        self.outputs = self._values(self._c.mendel_output_count, self._c.mendel_output)

    def __enter__(self) -> "LoadedPlan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Frees the plan; it cannot run any more."""
        if self._handle:
            self._c.mendel_free(self._handle)
            self._handle = None

    @property
    def version(self) -> str:
        """Of the library."""
        return str(self._c.mendel_version().decode())

    def run(self, inputs: Mapping[str, Any], outputs: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Runs the plan and returns NumPy arrays by output name (which export DLPack themselves).

        Inputs are NumPy arrays, or anything with `__dlpack__` in this machine's memory (PyTorch, JAX, ...), of exactly the types and
        shapes of `self.inputs`; they are copied only when they are not C-contiguous. `outputs`: C-contiguous arrays to write into.
        """
        import numpy

        unknown = set(inputs) - {value.name for value in self.inputs}
        if unknown:
            raise PlanError(f"the plan has no input '{sorted(unknown)[0]}'")
        arrays = [self._input(numpy, inputs, value) for value in self.inputs]
        results = [self._output(numpy, outputs or {}, value) for value in self.outputs]
        with self._lock:
            if not self._handle:
                raise PlanError("the plan is closed")
            if self._c.mendel_run(self._handle, _pointers(arrays), _pointers(results)) != 0:
                raise self._error()
        return {value.name: array for value, array in zip(self.outputs, results)}

    def _values(self, count: Any, describe: Any) -> List[ValueInfo]:
        values = []
        for index in range(count(self._handle)):
            value = _Value()
            if describe(self._handle, index, ctypes.byref(value)) != 0:
                raise self._error()
            name, numpy_name = _DTYPES[value.dtype]
            values.append(ValueInfo(value.name.decode(), name, numpy_name, tuple(value.shape[d] for d in range(value.rank))))
        return values

    def _error(self) -> PlanError:
        return PlanError(self._c.mendel_last_error().decode(errors="replace"))

    @staticmethod
    def _input(numpy: Any, inputs: Mapping[str, Any], value: ValueInfo) -> Any:
        if value.name not in inputs:
            raise PlanError(f"input '{value.name}' ({value.dtype}, {list(value.shape)}) is missing")
        given = inputs[value.name]
        array = given if isinstance(given, numpy.ndarray) or not hasattr(given, "__dlpack__") else numpy.from_dlpack(given)
        array = numpy.asarray(array)
        _check(array, value)
        return numpy.ascontiguousarray(array).reshape(value.shape)

    @staticmethod
    def _output(numpy: Any, outputs: Mapping[str, Any], value: ValueInfo) -> Any:
        array = outputs.get(value.name)
        if array is None:
            return numpy.empty(value.shape, value.numpy_dtype)
        _check(array, value)
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise PlanError(f"the array for output '{value.name}' is not C-contiguous and writable")
        return array


def _check(array: Any, value: ValueInfo) -> None:
    if str(array.dtype) != value.numpy_dtype or tuple(array.shape) != value.shape or not array.dtype.isnative:
        raise PlanError(f"'{value.name}' is {array.dtype}{list(array.shape)} where {value.numpy_dtype}{list(value.shape)} is wanted")


def _pointers(arrays: List[Any]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[array.ctypes.data for array in arrays])


def load_plan(path: PathLike, threads: int = 0, library: Optional[PathLike] = None) -> LoadedPlan:
    """Loads a plan file and compiles it for `threads` threads (0: as many as it was tuned for). `library`: path of libmendel.so
    (default: MENDEL_LIBRARY, beside this package, or installed)."""
    return LoadedPlan(path, threads, library)
