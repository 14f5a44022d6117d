"""The service's messages, made at import from its descriptors (service.binpb).

No generated code: it would tie the package to one version of protobuf. The descriptors live in a pool of their own, so that other
packages' copies of Google's protocols do no harm.
"""
from __future__ import annotations

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _load() -> descriptor_pool.DescriptorPool:
    path = pathlib.Path(__file__).with_name("service.binpb")
    if not path.exists():
        raise ImportError(f"{path.name} is missing: install the package (pip install ./client/python), or build the target mendel_python")
    files = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file) if not hasattr(pool, "AddSerializedFile") else pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load()
_FACTORY = None if hasattr(message_factory, "GetMessageClass") else message_factory.MessageFactory(_POOL)


def message(name: str) -> Any:
    """The class of the message with this full name."""
    descriptor = _POOL.FindMessageTypeByName(name)
    return message_factory.GetMessageClass(descriptor) if _FACTORY is None else _FACTORY.GetPrototype(descriptor)


def enum_name(name: str, number: int) -> str:
    """The name of an enum's value, or its number when this version does not know it."""
    value = _POOL.FindEnumTypeByName(name).values_by_number.get(number)
    return value.name if value is not None else str(number)


def enum_number(name: str, value: str) -> int:
    return int(_POOL.FindEnumTypeByName(name).values_by_name[value].number)


class Method:
    """One RPC: its path and messages, from its descriptor."""

    def __init__(self, service: str, name: str):
        descriptor = _POOL.FindServiceByName(service).methods_by_name[name]
        self.path = f"/{service}/{name}"
        self.request = message(descriptor.input_type.full_name)
        self.response = message(descriptor.output_type.full_name)


BYTE_STREAM = "google.bytestream.ByteStream"
JOBS = "mendel.v1.Jobs"
MODELS = "mendel.v1.Models"
PLANS = "mendel.v1.Plans"
HEALTH = "grpc.health.v1.Health"
