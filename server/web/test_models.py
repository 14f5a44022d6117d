"""Two small ONNX models for the test of the page: a convolution, and one that is wrong where its input was cut in halves."""
import struct

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def varint(value):
    text = bytearray()
    while value > 127:
        text.append(value & 127 | 128)
        value >>= 7
    return bytes(text) + bytes([value])


def field(number, value):
    """A protobuf field: a number, or bytes and text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, int):
        return field(5, field(1, name) + field(3, value) + field(20, 2))
    return field(5, field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7))


def node(operator, inputs, outputs, **attributes):
    return field(1, b"".join(field(1, x) for x in inputs) + b"".join(field(2, x) for x in outputs) + field(3, HOSTILE + outputs[0]) +
                 field(4, operator) + b"".join(attribute(*pair) for pair in attributes.items()))


def tensor(name, shape, seed):
    count = 1
    for extent in shape:
        count *= extent
    values = [((seed + 7919 * i) % 201 - 100) / 64 for i in range(count)]
    return field(5, b"".join(field(1, extent) for extent in shape) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{count}f", *values)))


def value_info(name, shape):
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, b"".join(field(1, field(1, extent)) for extent in shape))))


def model(nodes, size, output):
    graph = b"".join(nodes) + field(2, "net") + tensor("w", [8, 3, 3, 3], 5) + field(11, value_info("x", [1, 3, size, size])) + field(
        12, value_info(output, [1, 8, size, size]))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def whole(size, output=HOSTILE):
    return model([node("Conv", ["x", "w"], [output], kernel_shape=[3, 3], pads=[1, 1, 1, 1])], size, output)


def cut(size, output=HOSTILE):
    """Each quarter is padded with zeros where it met another."""
    nodes = [node("Split", ["x"], ["top", "bottom"], axis=2)]
    rows = []
    for part in ("top", "bottom"):
        nodes.append(node("Split", [part], [part + "_left", part + "_right"], axis=3))
        for side in ("left", "right"):
            nodes.append(node("Conv", [f"{part}_{side}", "w"], [f"{part}_{side}_y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        nodes.append(node("Concat", [f"{part}_left_y", f"{part}_right_y"], [part + "_y"], axis=3))
        rows.append(part + "_y")
    nodes.append(node("Concat", rows, [output], axis=2))
    return model(nodes, size, output)
