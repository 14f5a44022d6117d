"""ONNX graphs as JAX functions (XLA), for comparisons on machines that have JAX and no ONNX library: the twin of onnx_torch.py.

Reads the folder that `model_parts unpack` writes. Every node becomes the call that a user of JAX would write, in one jitted function.
Shapes, axes and the like must be stored tensors. An operator, attribute or form that has no function here is refused by the node's name:
nothing is approximated.
"""
import functools
import json
import math
import operator
import pathlib

import jax
import jax.numpy as jnp
import numpy
from jax import lax

DTYPES = {"f32": numpy.float32, "f64": numpy.float64, "f16": numpy.float16, "i8": numpy.int8, "u8": numpy.uint8, "i32": numpy.int32,
          "i64": numpy.int64, "bool": numpy.bool_}
FUNCTIONS = {}


class Unsupported(Exception):
    pass


class Node:
    """One node while it is traced: `attribute(name, default)`, `value(k)` its k-th input, `stored(k)` as numbers."""

    def __init__(self, reported, graph, values):
        self.reported, self.graph, self.values = reported, graph, values
        self.used = set()

    def attribute(self, name, default=None):
        self.used.add(name)
        return self.reported["attributes"].get(name, default)

    def has(self, k):
        return k < len(self.reported["inputs"]) and self.reported["inputs"][k] != ""

    def value(self, k):
        try:
            return self.graph.value(self.values, self.reported["inputs"][k])
        except Unsupported as why:
            self.refuse(why)

    def floats(self, k):
        x = self.value(k)
        if not jnp.issubdtype(x.dtype, jnp.floating):
            self.refuse(f"input {k} is no float")
        return x

    def all(self):
        return [self.value(k) for k in range(len(self.reported["inputs"]))]

    def stored(self, k):
        name = self.reported["inputs"][k]
        if name not in self.graph.stored:
            self.refuse(f"input {k} is no stored tensor")
        return self.graph.stored[name]

    def refuse(self, why):
        raise Unsupported(f"{self.reported['op']} '{self.reported['name']}': {why}")


def function(name):
    def register(write):
        FUNCTIONS[name] = write
        return write
    return register


for _name, _called in {"Relu": lambda x: jnp.maximum(x, 0), "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}.items():
    FUNCTIONS[_name] = lambda node, called=_called: called(*node.all())
for _name, _called in {"Sigmoid": jax.nn.sigmoid, "Tanh": jnp.tanh, "Erf": lax.erf, "Sqrt": jnp.sqrt, "Exp": jnp.exp,
                       "Div": operator.truediv, "Pow": jnp.power}.items():  # those that JAX would turn from integers into floats
    FUNCTIONS[_name] = lambda node, called=_called: called(node.floats(0), *node.all()[1:])
FUNCTIONS["MatMul"] = lambda node: jnp.matmul(node.value(0), node.value(1), precision=node.graph.products)
FUNCTIONS["Concat"] = lambda node: jnp.concatenate(node.all(), node.attribute("axis"))
FUNCTIONS["Transpose"] = lambda node: jnp.transpose(node.value(0), node.attribute("perm"))
FUNCTIONS["GlobalAveragePool"] = lambda node: jnp.mean(node.floats(0), tuple(range(2, node.value(0).ndim)), keepdims=True)


def wide(x):
    """At least 32 bits, for sums and statistics."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def along(values, rank):
    """One value per channel, as a tensor of this rank."""
    return values.reshape([1, -1] + [1] * (rank - 2))


def windows(node, kernel):
    """(strides, dilations, pads before and after) by dimension."""
    if node.attribute("auto_pad", "NOTSET") != "NOTSET":
        node.refuse("auto_pad")
    rank = len(kernel)
    pads = node.attribute("pads", [0] * (2 * rank))
    return node.attribute("strides", [1] * rank), node.attribute("dilations", [1] * rank), list(zip(pads[:rank], pads[rank:]))


def convolution(node, x, weights, **named):
    y = lax.conv_general_dilated(x, weights, feature_group_count=node.attribute("group", 1), precision=node.graph.products, **named)
    return y + along(node.value(2), y.ndim) if node.has(2) else y


def kernel_of(node):
    weights = node.floats(1)
    kernel = list(weights.shape[2:])
    if node.attribute("kernel_shape", kernel) != kernel:
        node.refuse("a kernel_shape that is not the weights'")
    return weights, kernel


@function("Conv")
def conv(node):
    weights, kernel = kernel_of(node)
    strides, dilations, pads = windows(node, kernel)
    return convolution(node, node.value(0), weights, window_strides=strides, padding=pads, rhs_dilation=dilations)


@function("ConvTranspose")
def conv_transpose(node):
    weights, kernel = kernel_of(node)
    strides, dilations, pads = windows(node, kernel)
    if node.attribute("output_shape") is not None:
        node.refuse("output_shape")
    # The convolution of the input with zeros between its elements by the mirrored kernel; weights [in, out / groups] -> [in / groups, out].
    groups, rank = node.attribute("group", 1), len(kernel)
    weights = jnp.moveaxis(weights.reshape(groups, -1, *weights.shape[1:]), 0, 1)
    weights = jnp.flip(weights.reshape(weights.shape[0], -1, *kernel), range(2, 2 + rank))
    reach, more = [d * (k - 1) for d, k in zip(dilations, kernel)], node.attribute("output_padding", [0] * rank)
    same = tuple(range(2 + rank))
    return convolution(node, node.value(0), weights, window_strides=[1] * rank, lhs_dilation=strides, rhs_dilation=dilations,
                       padding=[(r - before, r - after + m) for r, (before, after), m in zip(reach, pads, more)],
                       dimension_numbers=lax.ConvDimensionNumbers(same, (1, 0) + same[2:], same))


def pool(node, x, start, combine):
    """(result, by dimension: extent, kernel, stride, pads before and after, outputs)."""
    kernel = node.attribute("kernel_shape")
    strides, dilations, pads = windows(node, kernel)
    around, dimensions = [], []
    for extent, k, stride, dilation, (before, after) in zip(x.shape[2:], kernel, strides, dilations, pads):
        reach = dilation * (k - 1) + 1
        count = (extent + before + after - reach) // stride + 1
        # ceil_mode adds a window that juts out, if it starts no later than the input's last element.
        juts = node.attribute("ceil_mode", 0) and (count - 1) * stride + reach < extent + before + after and count * stride < extent + before
        count += bool(juts)
        around.append((before, max(after, (count - 1) * stride + reach - extent - before)))
        dimensions.append((extent, k, stride, before, after, count))
    pooled = lax.reduce_window(x, numpy.array(start, x.dtype), combine, (1, 1, *kernel), (1, 1, *strides), [(0, 0), (0, 0), *around],
                               window_dilation=(1, 1, *dilations))
    return pooled, dimensions


@function("MaxPool")
def max_pool(node):
    if node.attribute("storage_order", 0) != 0:
        node.refuse("storage_order")
    return pool(node, node.floats(0), -math.inf, lax.max)[0]


@function("AveragePool")
def average_pool(node):
    if any(d != 1 for d in node.attribute("dilations", [])):
        node.refuse("dilations")
    x, padded, counts = node.floats(0), node.attribute("count_include_pad", 0), numpy.ones([])
    sums, dimensions = pool(node, wide(x), 0, lax.add)
    for extent, k, stride, before, after, count in dimensions:  # a window's elements that count: in the input, or in it and its pads
        starts = numpy.arange(count) * stride - before
        low, high = (-before, extent + after) if padded else (0, extent)
        counts = counts[..., None] * (numpy.minimum(starts + k, high) - numpy.maximum(starts, low))
    same = (counts == counts.flat[0]).all()
    return (sums / (float(counts.flat[0]) if same else counts.astype(sums.dtype))).astype(x.dtype)


@function("ReduceMean")
def reduce_mean(node):
    axes = node.stored(1).tolist() if node.has(1) else node.attribute("axes")
    if not axes:
        node.refuse("no axes")
    node.attribute("noop_with_empty_axes")
    return jnp.mean(node.floats(0), tuple(axes), keepdims=bool(node.attribute("keepdims", 1)))


@function("BatchNormalization")
def batch_normalization(node):
    node.attribute("momentum")
    if node.attribute("training_mode", 0):
        node.refuse("training_mode")
    x = node.value(0)
    scale, bias, mean, variance = (wide(node.value(k)) for k in (1, 2, 3, 4))
    factor = scale * lax.rsqrt(variance + node.attribute("epsilon", 1e-5))
    return (wide(x) * along(factor, x.ndim) + along(bias - mean * factor, x.ndim)).astype(x.dtype)


@function("LayerNormalization")
def layer_normalization(node):
    x = node.value(0)
    if node.attribute("axis", -1) not in (-1, x.ndim - 1):
        node.refuse("an axis other than the last")
    if node.attribute("stash_type", 1) != 1:
        node.refuse("stash_type")
    centerd = wide(x) - jnp.mean(wide(x), -1, keepdims=True)
    y = centerd * lax.rsqrt(jnp.mean(centerd * centerd, -1, keepdims=True) + node.attribute("epsilon", 1e-5)) * node.value(1)
    return (y + node.value(2) if node.has(2) else y).astype(x.dtype)


@function("Gelu")
def gelu(node):
    approximate = node.attribute("approximate", "none")
    if approximate not in ("none", "tanh"):
        node.refuse("approximate")
    return jax.nn.gelu(node.value(0), approximate=approximate == "tanh")


@function("Softmax")
def softmax(node):
    if node.graph.opset < 13:
        node.refuse("opset before 13")
    return jax.nn.softmax(node.value(0), node.attribute("axis", -1))


@function("Gemm")
def gemm(node):
    a, b = (node.floats(k).T if node.attribute(name, 0) else node.floats(k) for k, name in ((0, "transA"), (1, "transB")))
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    product = jnp.matmul(a, b, precision=node.graph.products)
    product = product if alpha == 1 else product * alpha
    return product + (node.value(2) if beta == 1 else node.value(2) * beta) if node.has(2) else product


@function("Clip")
def clip(node):
    low, high = (node.stored(k).item() if node.has(k) else None for k in (1, 2))
    return jnp.clip(node.value(0), low, high)


@function("Reshape")
def reshape(node):
    x, wanted = node.value(0), node.stored(1).tolist()
    if node.attribute("allowzero", 0) and 0 in wanted:
        node.refuse("no elements")
    return x.reshape([x.shape[k] if extent == 0 else extent for k, extent in enumerate(wanted)])


@function("Flatten")
def flatten(node):
    if node.attribute("axis", 1) != 1:
        node.refuse("an axis other than 1")
    return node.value(0).reshape(node.value(0).shape[0], -1)


@function("Split")
def split(node):
    if not node.has(1):
        node.refuse("no sizes")
    x, sizes, axis = node.value(0), node.stored(1), node.attribute("axis", 0)
    if sizes.sum() != x.shape[axis]:
        node.refuse("sizes that are not the input's")
    return jnp.split(x, numpy.cumsum(sizes)[:-1].tolist(), axis)


@function("Gather")
def gather(node):
    x, axis, index = node.value(0), node.attribute("axis", 0), node.stored(1)
    if index.ndim > 1:
        node.refuse("a table of indices of rank above 1")
    extent = x.shape[axis]
    if ((index < -extent) | (index >= extent)).any():
        node.refuse("an index outside the input")  # JAX would read something else
    if index.ndim == 0:
        return lax.index_in_dim(x, index.item(), axis, keepdims=False)
    return jnp.take(x, (index % extent).astype(numpy.int32), axis)


class Graph:
    def __init__(self, folder, precision, tf32):
        folder = pathlib.Path(folder)
        self.reported = json.loads((folder / "graph.json").read_text())
        self.opset = self.reported["opset"]
        self.precision = {None: None, "float16": jnp.float16, "bfloat16": jnp.bfloat16}[precision]
        # Products of 16-bit numbers are exact in the f32 sums anyway.
        self.products = lax.Precision.DEFAULT if tf32 or precision else lax.Precision.HIGHEST
        data = numpy.memmap(folder / "tensors.bin", numpy.uint8, "r") if (folder / "tensors.bin").stat().st_size else numpy.zeros(0, numpy.uint8)
        self.stored, self.read = {}, set()
        for name, tensor in self.reported["tensors"].items():
            if tensor["type"] not in DTYPES:
                raise Unsupported(f"tensor '{name}' of {tensor['type']}")
            kind = numpy.dtype(DTYPES[tensor["type"]])
            count = int(numpy.prod(tensor["shape"], dtype=numpy.int64))
            self.stored[name] = data[tensor["offset"]:tensor["offset"] + count * kind.itemsize].view(kind).reshape(tensor["shape"])

    def kind(self, name, kind):
        """The type in which a tensor enters the computation."""
        if self.precision and numpy.issubdtype(kind, numpy.floating):
            return self.precision
        if numpy.dtype(kind).itemsize == 8 and not jax.config.jax_enable_x64:
            raise Unsupported(f"tensor '{name}' of 64 bits, which JAX would narrow: set jax_enable_x64")
        return kind

    def value(self, values, name):
        if name in self.stored and name not in self.read:
            self.kind(name, self.stored[name].dtype)
            self.read.add(name)
        if name not in values:
            raise Unsupported(f"'{name}' is computed by no node before")
        return values[name]

    def run(self, weights, *inputs):
        values = dict(weights)
        for reported, x in zip(self.reported["inputs"], inputs, strict=True):
            values[reported["name"]] = jnp.asarray(x, self.kind(reported["name"], DTYPES[reported["type"]]))
        for reported in self.reported["nodes"]:
            if reported["op"] not in FUNCTIONS:
                raise Unsupported(f"operator {reported['op']} ('{reported['name']}')")
            node = Node(reported, self, values)
            results = FUNCTIONS[reported["op"]](node)
            unknown = set(reported["attributes"]) - node.used
            if unknown:
                node.refuse(f"attribute {', '.join(sorted(unknown))}")
            results = results if isinstance(results, list) else [results]
            if any(reported["outputs"][len(results):]):
                node.refuse("several outputs")
            values.update(zip(reported["outputs"], results))
        outputs = (self.value(values, name) for name in self.reported["outputs"])
        return tuple(y.astype(jnp.float32) if self.precision and jnp.issubdtype(y.dtype, jnp.floating) else y for y in outputs)


def load(folder, precision=None, tf32=False):
    """(function, reported): a jitted function that takes the inputs in order and returns a tuple, and graph.json.

    With `precision` "float16" or "bfloat16" weights and float inputs have that type and outputs are f32. Products of f32 are exact f32, or
    TF32 where `tf32` is set and the machine has it. The weights are an argument of the jitted function, bound to it: as constants of the
    program they would be folded for minutes, so do not wrap the function in jax.jit again. function.func.lower(*function.args, ...) shows what
    is compiled.
    """
    graph = Graph(folder, precision, tf32)
    inputs = [jax.ShapeDtypeStruct(one["shape"], graph.kind(one["name"], DTYPES[one["type"]])) for one in graph.reported["inputs"]]
    kinds = {name: graph.precision if precision and x.dtype.kind == "f" else x.dtype for name, x in graph.stored.items()}
    # A run without numbers finds what is refused, and the tensors that are read as values.
    jax.eval_shape(graph.run, {name: jax.ShapeDtypeStruct(x.shape, kinds[name]) for name, x in graph.stored.items()}, *inputs)
    weights = {name: jnp.array(graph.stored[name], kinds[name]) for name in sorted(graph.read)}
    return functools.partial(jax.jit(graph.run), weights), graph.reported
