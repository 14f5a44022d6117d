"""The files that make up a model on this machine: the ONNX file and its external data.

The file is walked as protobuf's wire format over a memory map: weights inside it are skipped, never read into messages, and the
package needs no `onnx`.
"""
from __future__ import annotations

import mmap
import os
import pathlib
from typing import Dict, Iterator, List, Set, Tuple, Union

from mendel.service._errors import MendelError

# Message -> field number -> message of that field. Field numbers are onnx.proto's.
_FIELDS: Dict[str, Dict[int, str]] = {
    "Model": {7: "Graph", 20: "Training", 25: "Function"},
    "Training": {1: "Graph", 2: "Graph"},
    "Function": {7: "Node"},
    "Graph": {1: "Node", 5: "Tensor", 15: "Sparse"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "Sparse", 23: "Sparse"},
    "Sparse": {1: "Tensor", 2: "Tensor"},
    "Tensor": {13: "Entry"},
}
_MAX_DEPTH = 200


def _bad() -> MendelError:
    return MendelError("INVALID_ARGUMENT", "the file is not an ONNX model or is truncated")


def _varint(data: mmap.mmap, at: int, end: int) -> Tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _bad()


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[Tuple[int, int, int]]:
    """(field, begin, end) of every length-delimited field."""
    while at < end:
        key, at = _varint(data, at, end)
        kind = key & 7
        if kind == 0:
            _, at = _varint(data, at, end)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            size, at = _varint(data, at, end)
            if at + size > end:
                raise _bad()
            yield key >> 3, at, at + size
            at += size
        else:
            raise _bad()
        if at > end:
            raise _bad()


def _entry(data: mmap.mmap, begin: int, end: int) -> Tuple[str, str]:
    parts = {field: data[b:e].decode("utf-8", "surrogateescape") for field, b, e in _fields(data, begin, end)}
    return parts.get(1, ""), parts.get(2, "")


def external_locations(path: Union[str, "os.PathLike[str]"]) -> List[str]:
    """The external files that the model's tensors name, sorted, as they are spelled."""
    found: Set[str] = set()
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise _bad()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            pending = [("Model", 0, len(data), 0)]
            while pending:
                kind, begin, end, depth = pending.pop()
                if depth > _MAX_DEPTH:
                    raise _bad()
                for field, b, e in _fields(data, begin, end):
                    inner = _FIELDS[kind].get(field)
                    if inner == "Entry":
                        key, value = _entry(data, b, e)
                        if key == "location":
                            found.add(value)
                    elif inner is not None:
                        pending.append((inner, b, e, depth + 1))
    return sorted(found)


def model_files(path: Union[str, "os.PathLike[str]"]) -> Dict[str, pathlib.Path]:
    """Path within the model -> file on this machine, for everything that has to travel."""
    main = pathlib.Path(path)
    files = {main.name: main}
    for location in external_locations(main):
        relative = os.path.normpath(location).replace(os.sep, "/")
        if not location or os.path.isabs(location) or relative.split("/")[0] == "..":
            raise MendelError("INVALID_ARGUMENT", f"external data '{location}' lies outside the model's folder")
        local = main.parent / relative
        if not local.is_file():
            raise MendelError("INVALID_ARGUMENT", f"external data '{location}' is missing")
        target, root = local.resolve(), main.parent.resolve()
        if root not in target.parents:
            raise MendelError("INVALID_ARGUMENT", f"external data '{location}' is a link to '{target}', outside the model's folder "
                              f"'{root}'; copy the file into the folder")
        files[relative] = local
    return dict(sorted(files.items()))
