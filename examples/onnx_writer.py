"""Writes small ONNX models with random weights of a fixed seed: the messages of onnx.proto as bytes. Needs Python alone."""
import random
import struct

FLOAT32, INT64 = 1, 7  # Element types of TensorProto.
FLOAT, INT, STRING, INTS = 1, 2, 3, 7  # Kinds of AttributeProto.


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    """A field of the protobuf wire format that is an integer."""
    return varint(field << 3) + varint(value)


def block(field, content):
    """A field that is a string or a message."""
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, str):
        return block(1, name) + block(4, value) + number(20, STRING)
    if isinstance(value, float):
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, FLOAT)
    if isinstance(value, list):
        return block(1, name) + b"".join(number(8, one) for one in value) + number(20, INTS)
    return block(1, name) + number(3, value) + number(20, INT)


def value_info(name, shape):
    """An extent is a number, or the name of a symbolic dimension."""
    dimensions = b"".join(block(1, block(2, extent) if isinstance(extent, str) else number(1, extent)) for extent in shape)
    return block(1, name) + block(2, block(1, number(1, FLOAT32) + block(2, dimensions)))


class Net:
    """Methods append nodes and constants; each returns the name of its output."""

    def __init__(self, seed):
        self.random, self.nodes, self.constants = random.Random(seed), [], []

    def op(self, kind, *inputs, name=None, **attributes):
        name = name or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(b"".join(block(1, one) for one in inputs) + block(2, name) + block(3, name) + block(4, kind)
                          + b"".join(block(5, attribute(key, value)) for key, value in sorted(attributes.items())))
        return name

    def constant(self, shape, values, kind=FLOAT32):
        name = f"constant{len(self.constants)}"
        raw = struct.pack(f"<{len(values)}{'f' if kind == FLOAT32 else 'q'}", *values)
        self.constants.append(b"".join(number(1, extent) for extent in shape) + number(2, kind) + block(8, name) + block(9, raw))
        return name

    def draw(self, shape, low, high):
        count = 1
        for extent in shape:
            count *= extent
        return self.constant(shape, [low + (high - low) * self.random.random() for _ in range(count)])

    def conv(self, x, channels, outputs, kernel=3, stride=1, bias=True):
        bound = (3 / (channels * kernel * kernel)) ** 0.5
        weights = [self.draw([outputs, channels, kernel, kernel], -bound, bound)]
        weights += [self.draw([outputs], -0.1, 0.1)] if bias else []
        return self.op("Conv", x, *weights, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4)

    def batch_norm(self, x, channels):
        scale, shift, mean = self.draw([channels], 0.5, 1.5), self.draw([channels], -0.5, 0.5), self.draw([channels], -0.5, 0.5)
        return self.op("BatchNormalization", x, scale, shift, mean, self.draw([channels], 0.5, 1.5), epsilon=1e-5)

    def model(self, name, inputs, outputs):
        """The file's bytes. inputs, outputs: shapes by name."""
        graph = b"".join(block(1, one) for one in self.nodes) + block(2, name) + b"".join(block(5, one) for one in self.constants)
        graph += b"".join(block(11, value_info(*one)) for one in inputs.items()) + b"".join(block(12, value_info(*one)) for one in outputs.items())
        return number(1, 8) + block(2, "mendel examples") + block(7, graph) + block(8, block(1, "") + number(2, 17))
