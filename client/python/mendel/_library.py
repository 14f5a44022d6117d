"""libmendel.so through ctypes: the functions of mendel.h and mendel_optimizer.h, errors, and models as arguments."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

PathLike = Union[str, "os.PathLike[str]"]

_INSTALLED = ("/opt/mendel/lib/libmendel.so.0", "/usr/local/lib/libmendel.so.0", "/usr/lib/libmendel.so.0")


class Error(RuntimeError):
    """What Mendel refused, in the words of the command `mendel`."""


class InvalidArgument(Error, ValueError):
    """A mistake of the caller: a malformed model, an option or array that does not fit, a plan for another machine."""


class NotFound(Error, FileNotFoundError):
    """There is no such file."""


class Unsupported(Error, NotImplementedError):
    """A model that is correct, but uses something outside Mendel's language. The sentence names it."""


_ERRORS = {1: InvalidArgument, 2: NotFound, 3: Unsupported}
STOPPED = 5


class Value(ctypes.Structure):
    """mendel_value"""
    _fields_ = [
        ("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_size_t),
    ]


class LoadOptions(ctypes.Structure):
    """mendel_load_options"""
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("affinity", ctypes.c_char_p)]


class DynamicLimits(ctypes.Structure):
    """mendel_dynamic_limits"""
    _fields_ = [("size", ctypes.c_size_t), ("plans", ctypes.c_size_t), ("bytes", ctypes.c_int64)]


class DynamicUse(ctypes.Structure):
    """mendel_dynamic_use"""
    _fields_ = [
        ("size", ctypes.c_size_t), ("plans", ctypes.c_size_t), ("bytes", ctypes.c_int64), ("hits", ctypes.c_int64),
        ("made", ctypes.c_int64), ("dropped", ctypes.c_int64),
    ]


class Model(ctypes.Structure):
    """mendel_model"""
    _fields_ = [("path", ctypes.c_char_p), ("bytes", ctypes.c_char_p), ("size", ctypes.c_size_t)]


Progress = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Call(ctypes.Structure):
    """mendel_call"""
    _fields_ = [
        ("size", ctypes.c_size_t), ("options", ctypes.POINTER(ctypes.c_char_p)), ("progress", Progress), ("user", ctypes.c_void_p),
        ("stop", ctypes.c_void_p),
    ]


_P = ctypes.c_void_p
_PP = ctypes.POINTER(ctypes.c_void_p)
_FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("mendel_version", ctypes.c_char_p, []),
    ("mendel_last_error", ctypes.c_char_p, []),
    ("mendel_load", _P, [ctypes.c_char_p, ctypes.c_int]),
    ("mendel_load_with", _P, [ctypes.c_char_p, ctypes.POINTER(LoadOptions)]),
    ("mendel_free", None, [_P]),
    ("mendel_member_count", ctypes.c_int, [_P]),
    ("mendel_select_shapes", ctypes.c_int, [_P, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))]),
    ("mendel_select_inputs", ctypes.c_int,
     [_P, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)), _PP]),
    ("mendel_input_count", ctypes.c_int, [_P]),
    ("mendel_output_count", ctypes.c_int, [_P]),
    ("mendel_input", ctypes.c_int, [_P, ctypes.c_int, ctypes.POINTER(Value)]),
    ("mendel_output", ctypes.c_int, [_P, ctypes.c_int, ctypes.POINTER(Value)]),
    ("mendel_run", ctypes.c_int, [_P, _PP, _PP]),
]
_OPTIMIZER_FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("mendel_stop_new", _P, []),
    ("mendel_stop_request", None, [_P]),
    ("mendel_stop_free", None, [_P]),
    ("mendel_text_free", None, [_P]),
    ("mendel_optimize", ctypes.c_int, [ctypes.POINTER(Model), ctypes.POINTER(Call), _PP]),
    ("mendel_program_read", ctypes.c_int, [ctypes.c_char_p, _PP]),
    ("mendel_program_write", ctypes.c_int, [_P, ctypes.c_char_p]),
    ("mendel_program_export", ctypes.c_int, [_P, ctypes.c_int, ctypes.c_char_p]),
    ("mendel_program_facts", ctypes.c_int, [_P, _PP]),
    ("mendel_program_compile", ctypes.c_int, [_P, ctypes.POINTER(LoadOptions), _PP]),
    ("mendel_program_free", None, [_P]),
    ("mendel_verify", ctypes.c_int, [ctypes.POINTER(Model), ctypes.POINTER(Model), ctypes.POINTER(Call), _PP]),
    ("mendel_compile_model", ctypes.c_int, [ctypes.POINTER(Model), ctypes.c_char_p, ctypes.POINTER(LoadOptions), _PP]),
    ("mendel_open_model", ctypes.c_int,
     [ctypes.POINTER(Model), ctypes.POINTER(LoadOptions), ctypes.POINTER(DynamicLimits), _PP]),
    ("mendel_adopt", ctypes.c_int, [_P, _P]),
    ("mendel_dynamic_use_of", ctypes.c_int, [_P, ctypes.POINTER(DynamicUse)]),
    ("mendel_describe_model", ctypes.c_int, [ctypes.POINTER(Model), _PP]),
]
_lock = threading.Lock()
_opened: Dict[str, ctypes.CDLL] = {}


def library(explicit: Optional[PathLike] = None) -> ctypes.CDLL:
    """The library at `explicit`, else at MENDEL_LIBRARY, else the one in this package, else an installed one. Opened once."""
    explicit = explicit or os.environ.get("MENDEL_LIBRARY")
    key = os.fspath(explicit) if explicit else ""
    with _lock:
        if key not in _opened:
            _opened[key] = _open(key)
        return _opened[key]


def _open(explicit: str) -> ctypes.CDLL:
    own = pathlib.Path(__file__).with_name("libmendel.so.0")
    candidates = [explicit] if explicit else [str(own), *_INSTALLED, ctypes.util.find_library("mendel") or ""]
    for candidate in candidates:
        if not explicit and not (candidate and (os.path.exists(candidate) or "/" not in candidate)):
            continue
        try:
            return _declare(ctypes.CDLL(candidate))
        except OSError as error:
            hint = ""
            if "GLIBC" in str(error):
                hint = "; this library needs glibc 2.36 or newer (Debian 12, Ubuntu 22.10, Fedora 37, RHEL 10)"
            raise Error(f"cannot load {candidate}: {error}{hint}") from None
    raise Error("libmendel.so was not found: give its path (library=..., MENDEL_LIBRARY) or install Mendel")


def _declare(c: ctypes.CDLL) -> ctypes.CDLL:
    for name, result, arguments in _FUNCTIONS + (_OPTIMIZER_FUNCTIONS if hasattr(c, "mendel_optimize") else []):
        function = getattr(c, name)
        function.restype, function.argtypes = result, arguments
    if not hasattr(c, "mendel_optimize"):
        raise Error(f"{c._name} is an older libmendel.so without the optimizer")
    return c


def version() -> str:
    """Version of the library, e.g. "0.1.0"."""
    return str(library().mendel_version().decode())


def last_error(c: ctypes.CDLL, status: int = 1) -> Error:
    """The exception for the last failure on this thread."""
    return _ERRORS.get(status, Error)(c.mendel_last_error().decode(errors="replace"))


def check(c: ctypes.CDLL, status: int) -> None:
    if status != 0:
        raise last_error(c, status)


def take_text(c: ctypes.CDLL, pointer: ctypes.c_void_p) -> str:
    """A text that the library made; frees it."""
    text = ctypes.string_at(pointer.value or 0).decode()
    c.mendel_text_free(pointer)
    return text


def model_argument(model: Any) -> Model:
    """A path, the bytes of a model, or an onnx.ModelProto. The structure keeps what it points to."""
    if isinstance(model, (str, os.PathLike)):
        return Model(os.fsencode(model), None, 0)
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        return Model(None, data, len(data))
    raise TypeError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")


def shapes_text(shapes: Any) -> str:
    """{"x": (1, 3)} in the grammar of --shapes: "x:1x3"."""
    return ",".join(f"{name}:{'x'.join(str(int(size)) for size in shape) or 'scalar'}" for name, shape in shapes.items())


def option_words(options: Any) -> List[bytes]:
    """Keyword arguments as words of the command line: {"max_candidates": 5} is --max-candidates=5; True is a flag, and a list repeats
    its option. None is left out."""
    words = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words.append(f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return [word.encode() for word in words]


class Stop:
    """A stop token."""

    def __init__(self, c: ctypes.CDLL):
        self._c = c
        self.pointer = c.mendel_stop_new()

    def request(self) -> None:
        self._c.mendel_stop_request(self.pointer)

    def __del__(self) -> None:
        self._c.mendel_stop_free(self.pointer)


def call_argument(words: List[bytes], progress: Optional[Callable[[bytes], None]], stop: Stop) -> Call:
    """mendel_call; the structure keeps what it points to, except `stop`."""
    array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    callback = Progress(lambda _user, text: progress(text)) if progress is not None else Progress()
    return Call(ctypes.sizeof(Call), array, callback, None, stop.pointer)


def interruptible(work: Callable[[], Any], stop: Stop) -> Tuple[Any, bool]:
    """The result of `work()`, and true when Ctrl-C requested the stop.

    On the main thread `work` runs on a thread of its own, so that Ctrl-C arrives. The first one requests the stop; a second one raises
    KeyboardInterrupt at once, and the work ends by itself."""
    if threading.current_thread() is not threading.main_thread():
        return work(), False
    result: List[Any] = []
    failure: List[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="mendel", daemon=True).start()
    stopped = False
    while not done.is_set():
        try:
            done.wait()  # Thread.join takes a thread for ended once Ctrl-C interrupts it
        except KeyboardInterrupt:
            stop.request()
            if stopped:
                raise
            stopped = True
    if failure:
        raise failure[0]
    return result[0], stopped
