"""Writes ONNX models without the onnx package: the messages of onnx.proto as bytes of the protobuf wire format. Needs NumPy only."""
import struct

import numpy

ELEMENT_TYPES = {"float32": 1, "int64": 7, "bool": 9}
FLOAT, INT, STRING, FLOATS, INTS = 1, 2, 3, 6, 7  # of AttributeProto


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def decimal(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def tensor(name, array):
    """A TensorProto."""
    array = numpy.ascontiguousarray(array)
    raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return b"".join(number(1, d) for d in array.shape) + number(2, ELEMENT_TYPES[array.dtype.name]) + block(8, name) + block(9, raw)


def attribute(name, value):
    """An AttributeProto of a number, a string, or a list of numbers."""
    if isinstance(value, str):
        return block(1, name) + block(4, value) + number(20, STRING)
    if isinstance(value, float):
        return block(1, name) + decimal(2, value) + number(20, FLOAT)
    if isinstance(value, (list, tuple)):
        if any(isinstance(one, float) for one in value):
            return block(1, name) + b"".join(decimal(7, one) for one in value) + number(20, FLOATS)
        return block(1, name) + b"".join(number(8, int(one)) for one in value) + number(20, INTS)
    return block(1, name) + number(3, int(value)) + number(20, INT)


def node(kind, name, inputs, outputs, attributes):
    """A NodeProto."""
    return (b"".join(block(1, one) for one in inputs) + b"".join(block(2, one) for one in outputs) + block(3, name) + block(4, kind)
            + b"".join(block(5, attribute(key, value)) for key, value in sorted(attributes.items())))


def value_info(name, shape):
    """A ValueInfoProto of 32-bit floats; the shape is open where it is None."""
    described = number(1, ELEMENT_TYPES["float32"])
    if shape is not None:
        described += block(2, b"".join(block(1, number(1, extent)) for extent in shape))
    return block(1, name) + block(2, block(1, described))


def model(name, nodes, constants, inputs, outputs, opset=17):
    """A ModelProto. nodes: of node(); constants: name -> array; inputs: name -> shape; outputs: names."""
    graph = b"".join(block(1, one) for one in nodes) + block(2, name)
    graph += b"".join(block(5, tensor(key, array)) for key, array in constants.items())
    graph += b"".join(block(11, value_info(key, shape)) for key, shape in inputs.items())
    graph += b"".join(block(12, value_info(key, None)) for key in outputs)
    return number(1, 8) + block(2, "mendel bench") + block(7, graph) + block(8, block(1, "") + number(2, opset))
