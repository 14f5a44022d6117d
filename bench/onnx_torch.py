"""ONNX graphs as PyTorch modules, for comparisons on machines that have PyTorch and no ONNX library.

Reads the folder that `model_parts unpack` writes. Every node becomes one call in a torch.fx graph, of the function that a user of PyTorch
would write, so that torch.compile sees straight code. Shapes, axes and the like must be stored tensors. An operator, attribute or form that
has no function here is refused by the node's name: nothing is approximated.
"""
import json
import operator
import pathlib

import numpy
import torch
import torch.nn.functional as F

DTYPES = {"f32": numpy.float32, "f64": numpy.float64, "f16": numpy.float16, "i8": numpy.int8, "u8": numpy.uint8, "i32": numpy.int32,
          "i64": numpy.int64, "bool": numpy.bool_}
FUNCTIONS = {}


class Unsupported(Exception):
    pass


class Node:
    """One node while it is written: `attribute(name, default)`, `value(k)` its k-th input in the fx graph, `stored(k)` as numbers."""

    def __init__(self, reported, writer):
        self.reported, self.writer = reported, writer
        self.used = set()

    def attribute(self, name, default=None):
        self.used.add(name)
        return self.reported["attributes"].get(name, default)

    def has(self, k):
        return k < len(self.reported["inputs"]) and self.reported["inputs"][k] != ""

    def value(self, k):
        return self.writer.value(self.reported["inputs"][k]) if self.has(k) else None

    def stored(self, k):
        name = self.reported["inputs"][k]
        if name not in self.writer.stored:
            self.refuse(f"input {k} is no stored tensor")
        return self.writer.stored[name]

    def rank(self, k):
        return self.writer.rank(self.reported["inputs"][k])

    def call(self, function, *arguments, **named):
        return self.writer.graph.call_function(function, arguments, named)

    def refuse(self, why):
        raise Unsupported(f"{self.reported['op']} '{self.reported['name']}': {why}")


def function(*names):
    def register(write):
        FUNCTIONS.update({name: write for name in names})
        return write
    return register


def plain(name, called):
    FUNCTIONS[name] = lambda node: node.call(called, *(node.value(k) for k in range(len(node.reported["inputs"]))))


for _name, _called in {"Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf, "Sqrt": torch.sqrt, "Exp": torch.exp,
                       "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv, "Pow": torch.pow,
                       "MatMul": torch.matmul}.items():
    plain(_name, _called)


def even_pads(node, rank, value=0.0):
    """(input, pads by dimension): uneven ones are a padding of their own."""
    if node.attribute("auto_pad", "NOTSET") != "NOTSET":
        node.refuse("auto_pad")
    pads = node.attribute("pads", [0] * (2 * rank))
    x, before, after = node.value(0), pads[:rank], pads[rank:]
    if before == after:
        return x, before
    if value is None:
        node.refuse("uneven pads")
    around = [p for k in reversed(range(rank)) for p in (before[k], after[k])]
    return node.call(F.pad, x, around, value=value), [0] * rank


@function("Conv")
def conv(node):
    rank = node.rank(0) - 2
    node.attribute("kernel_shape")  # that of the weights
    x, pads = even_pads(node, rank)
    return node.call((F.conv1d, F.conv2d, F.conv3d)[rank - 1], x, node.value(1), node.value(2), stride=node.attribute("strides", [1] * rank),
                     padding=pads, dilation=node.attribute("dilations", [1] * rank), groups=node.attribute("group", 1))


@function("ConvTranspose")
def conv_transpose(node):
    rank = node.rank(0) - 2
    node.attribute("kernel_shape")  # that of the weights
    if node.attribute("output_shape") is not None:
        node.refuse("output_shape")
    pads = node.attribute("pads", [0] * (2 * rank))
    if node.attribute("auto_pad", "NOTSET") != "NOTSET" or pads[:rank] != pads[rank:]:
        node.refuse("uneven pads")
    return node.call((F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1], node.value(0), node.value(1), node.value(2),
                     stride=node.attribute("strides", [1] * rank), padding=pads[:rank],
                     output_padding=node.attribute("output_padding", [0] * rank), groups=node.attribute("group", 1),
                     dilation=node.attribute("dilations", [1] * rank))


@function("MaxPool")
def max_pool(node):
    kernel = node.attribute("kernel_shape")
    rank = len(kernel)
    x, pads = even_pads(node, rank, float("-inf"))
    if node.attribute("storage_order", 0) != 0:
        node.refuse("storage_order")
    return node.call((F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1], x, kernel, stride=node.attribute("strides", [1] * rank), padding=pads,
                     dilation=node.attribute("dilations", [1] * rank), ceil_mode=bool(node.attribute("ceil_mode", 0)))


@function("AveragePool")
def average_pool(node):
    kernel = node.attribute("kernel_shape")
    rank = len(kernel)
    if any(d != 1 for d in node.attribute("dilations", [1] * rank)):
        node.refuse("dilations")
    counted = bool(node.attribute("count_include_pad", 0))
    x, pads = even_pads(node, rank, 0.0 if counted else None)
    return node.call((F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1], x, kernel, stride=node.attribute("strides", [1] * rank), padding=pads,
                     ceil_mode=bool(node.attribute("ceil_mode", 0)), count_include_pad=counted)


@function("GlobalAveragePool")
def global_average_pool(node):
    return node.call(torch.mean, node.value(0), list(range(2, node.rank(0))), keepdim=True)


@function("ReduceMean")
def reduce_mean(node):
    axes = node.stored(1).tolist() if node.has(1) else node.attribute("axes")
    if not axes:
        node.refuse("no axes")
    node.attribute("noop_with_empty_axes")
    return node.call(torch.mean, node.value(0), axes, keepdim=bool(node.attribute("keepdims", 1)))


@function("BatchNormalization")
def batch_normalization(node):
    node.attribute("momentum")
    if node.attribute("training_mode", 0):
        node.refuse("training_mode")
    return node.call(F.batch_norm, node.value(0), node.value(3), node.value(4), node.value(1), node.value(2),
                     eps=node.attribute("epsilon", 1e-5))


@function("LayerNormalization")
def layer_normalization(node):
    node.attribute("stash_type")
    if node.attribute("axis", -1) not in (-1, node.rank(0) - 1):
        node.refuse("an axis other than the last")
    return node.call(F.layer_norm, node.value(0), list(node.stored(1).shape), node.value(1), node.value(2), node.attribute("epsilon", 1e-5))


@function("Gelu")
def gelu(node):
    return node.call(F.gelu, node.value(0), approximate=node.attribute("approximate", "none"))


@function("Softmax")
def softmax(node):
    if node.writer.opset < 13:
        node.refuse("opset before 13")
    return node.call(torch.softmax, node.value(0), node.attribute("axis", -1))


@function("Gemm")
def gemm(node):
    a, b = (node.call(torch.t, node.value(k)) if node.attribute(name, 0) else node.value(k) for k, name in ((0, "transA"), (1, "transB")))
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    if not node.has(2):
        product = node.call(torch.matmul, a, b)
        return product if alpha == 1 else node.call(operator.mul, product, alpha)
    return node.call(torch.addmm, node.value(2), a, b, beta=beta, alpha=alpha)


@function("Clip")
def clip(node):
    low, high = (node.stored(k).item() if node.has(k) else None for k in (1, 2))
    return node.call(torch.clamp, node.value(0), low, high)


@function("Concat")
def concat(node):
    return node.call(torch.cat, [node.value(k) for k in range(len(node.reported["inputs"]))], node.attribute("axis"))


@function("Transpose")
def transpose(node):
    return node.call(torch.permute, node.value(0), node.attribute("perm", list(reversed(range(node.rank(0))))))


@function("Reshape")
def reshape(node):
    before, wanted = node.writer.shape(node.reported["inputs"][0]), node.stored(1).tolist()
    if 0 in wanted and node.attribute("allowzero", 0):
        node.refuse("no elements")
    node.attribute("allowzero")
    return node.call(torch.reshape, node.value(0), [before[k] if extent == 0 else extent for k, extent in enumerate(wanted)])


@function("Flatten")
def flatten(node):
    if node.attribute("axis", 1) != 1:
        node.refuse("an axis other than 1")
    return node.call(torch.flatten, node.value(0), 1)


@function("Split")
def split(node):
    if not node.has(1):
        node.refuse("no sizes")
    return node.call(torch.split, node.value(0), node.stored(1).tolist(), node.attribute("axis", 0))


@function("Gather")
def gather(node):
    axis, index = node.attribute("axis", 0), node.stored(1)
    if index.ndim == 0:
        return node.call(torch.select, node.value(0), axis, index.item())
    if index.ndim > 1:
        node.refuse("a table of indices of rank above 1")
    return node.call(torch.index_select, node.value(0), axis, node.value(1))


class Writer:
    """The fx graph under construction, run once on meta tensors as it grows, so that shapes are known."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.reported = json.loads((folder / "graph.json").read_text())
        self.opset = self.reported["opset"]
        data = numpy.memmap(folder / "tensors.bin", numpy.uint8, "c") if (folder / "tensors.bin").stat().st_size else numpy.zeros(0, numpy.uint8)
        self.stored = {}
        for name, tensor in self.reported["tensors"].items():
            if tensor["type"] not in DTYPES:
                raise Unsupported(f"tensor '{name}' of {tensor['type']}")
            kind = numpy.dtype(DTYPES[tensor["type"]])
            count = int(numpy.prod(tensor["shape"], dtype=numpy.int64))
            self.stored[name] = data[tensor["offset"]:tensor["offset"] + count * kind.itemsize].view(kind).reshape(tensor["shape"])
        self.graph, self.root, self.values, self.shapes = torch.fx.Graph(), torch.nn.Module(), {}, {}

    def value(self, name):
        if name not in self.values:
            if name not in self.stored:
                raise Unsupported(f"'{name}' is computed by no node before")
            target = f"tensor{len(self.values)}"
            self.root.register_buffer(target, torch.from_numpy(numpy.array(self.stored[name])))
            self.keep(name, self.graph.get_attr(target), torch.empty(self.stored[name].shape, device="meta"))
        return self.values[name]

    def keep(self, name, written, meta):
        self.values[name], self.shapes[name] = written, list(meta.shape)
        written.meta["made"] = meta

    def shape(self, name):
        self.value(name)
        return self.shapes[name]

    def rank(self, name):
        return len(self.shape(name))

    def add(self, reported):
        if reported["op"] not in FUNCTIONS:
            raise Unsupported(f"operator {reported['op']} ('{reported['name']}')")
        node, before = Node(reported, self), len(self.graph.nodes)
        result = FUNCTIONS[reported["op"]](node)
        unknown = set(reported["attributes"]) - node.used
        if unknown:
            node.refuse(f"attribute {', '.join(sorted(unknown))}")
        for written in list(self.graph.nodes)[before:]:
            if written.op == "call_function":
                arguments = torch.fx.node.map_arg((written.args, written.kwargs), lambda n: n.meta["made"])
                written.meta["made"] = written.target(*arguments[0], **arguments[1])
        outputs = [name for name in reported["outputs"] if name]
        if isinstance(result.meta["made"], torch.Tensor):
            if len(outputs) > 1:
                node.refuse("several outputs")
            return self.keep(outputs[0], result, result.meta["made"])
        for k, name in enumerate(outputs):
            self.keep(name, self.graph.call_function(operator.getitem, (result, k)), result.meta["made"][k])


def load(folder):
    """(module, reported): a torch.fx.GraphModule in evaluation mode that takes the inputs in order and returns a tuple, and graph.json."""
    writer = Writer(folder)
    for reported in writer.reported["inputs"]:
        kind = torch.from_numpy(numpy.zeros(0, DTYPES[reported["type"]])).dtype
        writer.keep(reported["name"], writer.graph.placeholder("input"), torch.empty(reported["shape"], dtype=kind, device="meta"))
    for reported in writer.reported["nodes"]:
        writer.add(reported)
    writer.graph.output(tuple(writer.value(name) for name in writer.reported["outputs"]))
    return torch.fx.GraphModule(writer.root, writer.graph).eval(), writer.reported
