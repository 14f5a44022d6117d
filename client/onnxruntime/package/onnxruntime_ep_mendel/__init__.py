"""Mendel's execution provider for ONNX Runtime: the path of its library and its name, for onnxruntime.register_execution_provider_library."""
from __future__ import annotations

import pathlib

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]

_LIBRARY = "libonnxruntime_providers_mendel.so"


def get_library_path() -> str:
    """The absolute path of the library. FileNotFoundError if the package lacks it."""
    path = pathlib.Path(__file__).resolve().parent / _LIBRARY
    if not path.is_file():
        raise FileNotFoundError(f"{path} is absent: install the wheel of onnxruntime-ep-mendel, which contains it")
    return str(path)


def get_ep_name() -> str:
    """The provider's name, as `ep_name` of onnxruntime.get_ep_devices() has it."""
    return "MendelExecutionProvider"


def get_ep_names() -> list[str]:
    """The names of all providers of the library."""
    return [get_ep_name()]
