"""Plans run in this process, through Mendel's C interface (libmendel.so, runtime/mendel.h)."""
from __future__ import annotations

import ctypes
import dataclasses
import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mendel import _library
from mendel._library import Error, InvalidArgument, PathLike

# mendel_dtype -> (name, NumPy's type). NumPy has no bfloat16 and no 8-bit floats: their bits travel as uint16 and uint8.
_DTYPES: List[Tuple[str, str]] = [
    ("f32", "float32"), ("f16", "float16"), ("bf16", "uint16"), ("f64", "float64"), ("i8", "int8"), ("u8", "uint8"),
    ("i32", "int32"), ("i64", "int64"), ("bool", "bool"), ("i16", "int16"), ("u16", "uint16"), ("u32", "uint32"),
    ("u64", "uint64"), ("f8e4m3fn", "uint8"), ("f8e4m3fnuz", "uint8"), ("f8e5m2", "uint8"), ("f8e5m2fnuz", "uint8"),
]

PlanError = Error  # old name


@dataclasses.dataclass(frozen=True)
class ValueInfo:
    """One input or output. `dtype` is Mendel's name, `numpy_dtype` the type of its arrays (bf16: uint16, f8...: uint8, the bits)."""

    name: str
    dtype: str
    numpy_dtype: str
    shape: Tuple[int, ...]


class LoadedPlan:
    """A compiled plan. Threads may share it: its runs take place one after the other, and the interpreter's lock is released meanwhile.
    Load the plan once a thread to run side by side.

    The shapes of a run's inputs choose the member of a bundle, which is compiled at its first use. `inputs` and `outputs` describe the
    member that ran last (first: member 0)."""

    def __init__(self, path: PathLike, threads: int = 0, library: Optional[PathLike] = None):
        c = _library.library(library)
        handle = c.mendel_load(os.fsencode(path), threads)
        self._adopt(c, handle)

    @classmethod
    def _of_handle(cls, c: ctypes.CDLL, handle: Optional[int]) -> "LoadedPlan":
        plan = cls.__new__(cls)
        plan._adopt(c, handle)
        return plan

    def _adopt(self, c: ctypes.CDLL, handle: Optional[int]) -> None:
        self._c, self._handle, self._lock = c, handle, threading.Lock()
        if not handle:
            message = c.mendel_last_error().decode(errors="replace")
            raise _library.NotFound(message) if "No such file" in message else InvalidArgument(message)
        self._members = c.mendel_member_count(handle)
        self._describe()
        self._names = [value.name for value in self.inputs]

    @classmethod
    def _dynamic(cls, c: ctypes.CDLL, handle: Optional[int], inputs: Mapping[str, str]) -> "LoadedPlan":
        """Of mendel_open_model, whose plans are made for the inputs of each run. `inputs`: the model's, in order, and their dtypes."""
        plan = cls.__new__(cls)
        plan._c, plan._handle, plan._lock, plan._members = c, handle, threading.Lock(), 0
        numpy_types = dict(_DTYPES)
        plan._types = {name: numpy_types[dtype] for name, dtype in inputs.items()}
        plan._names, plan.inputs, plan.outputs = list(inputs), [], []
        return plan

    def _describe(self) -> None:
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
        if getattr(self, "_handle", None):
            with self._lock:
                handle, self._handle = self._handle, None
            if handle:
                self._c.mendel_free(handle)

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

        with self._lock:
            if not self._handle:
                raise InvalidArgument("the plan is closed")
            unknown = set(inputs) - set(self._names)
            if unknown:
                names = ", ".join(f"'{name}'" for name in self._names)
                raise InvalidArgument(f"the plan has no input '{sorted(unknown)[0]}' (its inputs are {names})")
            given = {name: _array(numpy, inputs, name, self.inputs) for name in self._names}
            if self._members != 1:
                self._select(numpy, given)
            arrays = [_input(numpy, given[value.name], value) for value in self.inputs]
            results = [_output(numpy, outputs or {}, value) for value in self.outputs]
            _library.check(self._c, self._c.mendel_run(self._handle, _pointers(arrays), _pointers(results)))
            return {value.name: array for value, array in zip(self.outputs, results)}

    def _select(self, numpy: Any, given: Mapping[str, Any]) -> None:
        shapes = [tuple(given[name].shape) for name in self._names]
        if self._members > 1 and shapes == [value.shape for value in self.inputs]:
            return
        ranks = (ctypes.c_int * len(shapes))(*[len(shape) for shape in shapes])
        extents = [(ctypes.c_int64 * max(1, len(shape)))(*shape) for shape in shapes]
        pointers = (ctypes.POINTER(ctypes.c_int64) * len(shapes))(*[ctypes.cast(e, ctypes.POINTER(ctypes.c_int64)) for e in extents])
        arrays = None
        if self._members == 0:
            arrays = [numpy.ascontiguousarray(given[name]) for name in self._names]
            for name, array in zip(self._names, arrays):
                if str(array.dtype) != self._types[name] or not array.dtype.isnative:
                    raise InvalidArgument(f"'{name}' is {array.dtype} where {self._types[name]} is wanted")
        values = None if arrays is None else _pointers(arrays)
        _library.check(self._c, self._c.mendel_select_inputs(self._handle, ranks, pointers, values))
        self._describe()

    def _values(self, count: Any, describe: Any) -> List[ValueInfo]:
        values = []
        for index in range(count(self._handle)):
            value = _library.Value()
            _library.check(self._c, describe(self._handle, index, ctypes.byref(value)))
            name, numpy_name = _DTYPES[value.dtype]
            values.append(ValueInfo(value.name.decode(), name, numpy_name, tuple(value.shape[d] for d in range(value.rank))))
        return values


def _array(numpy: Any, inputs: Mapping[str, Any], name: str, values: List[ValueInfo]) -> Any:
    if name not in inputs:
        types = [f" ({value.dtype}, {list(value.shape)})" for value in values if value.name == name]
        raise InvalidArgument(f"input '{name}'{''.join(types)} is missing")
    given = inputs[name]
    array = given if isinstance(given, numpy.ndarray) or not hasattr(given, "__dlpack__") else numpy.from_dlpack(given)
    return numpy.asarray(array)


def _input(numpy: Any, array: Any, value: ValueInfo) -> Any:
    _check(array, value)
    return numpy.ascontiguousarray(array).reshape(value.shape)


def _output(numpy: Any, outputs: Mapping[str, Any], value: ValueInfo) -> Any:
    array = outputs.get(value.name)
    if array is None:
        return numpy.empty(value.shape, value.numpy_dtype)
    _check(array, value)
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise InvalidArgument(f"the array for output '{value.name}' is not C-contiguous and writable")
    return array


def _check(array: Any, value: ValueInfo) -> None:
    if str(array.dtype) != value.numpy_dtype or tuple(array.shape) != value.shape or not array.dtype.isnative:
        raise InvalidArgument(f"'{value.name}' is {array.dtype}{list(array.shape)} where {value.numpy_dtype}{list(value.shape)} is wanted")


def _pointers(arrays: List[Any]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[array.ctypes.data for array in arrays])


def load_plan(path: PathLike, threads: int = 0, library: Optional[PathLike] = None) -> LoadedPlan:
    """Loads a plan file and compiles it for `threads` threads (0: as many as it was tuned for). `library`: path of libmendel.so
    (default: MENDEL_LIBRARY, beside this package, or installed)."""
    return LoadedPlan(path, threads, library)
