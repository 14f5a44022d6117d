"""A graph of a pair under construction, in its naive or in its expert form."""
import zlib

import numpy
import onnx_bytes

CONTEXTS = {
    "alone": "the graph is the kind's alone",
    "after": "every input passes a cheap layer first",
    "before": "a cheap layer reads the output",
    "within": "layers before and after",
    "double": "two instances with inputs and weights of their own",
    "readers": "other layers read the inputs, too",
}


class Net:
    """Methods append a node and return the name of its output. Constants are equal in both forms wherever their names are."""

    def __init__(self, name, expert, context, seed):
        self.name, self.expert, self.context, self.seed = name, expert, context, seed
        self.nodes, self.constants, self.inputs, self.outputs, self.part, self.known = [], {}, {}, [], 0, 0
        self.swapped = not expert and zlib.crc32(name.encode()) % 2 == 1  # operands of Add and Mul, in half of the naive forms

    def op(self, kind, *inputs, outputs=1, **attributes):
        if self.swapped and kind in ("Add", "Mul"):
            inputs = inputs[::-1]
        number = len(self.nodes)
        names = [f"v{number}_{k}" for k in range(outputs)]
        self.nodes.append((kind, f"{kind}_{number}", inputs, names, attributes))
        return names[0] if outputs == 1 else names

    def input(self, *shape):
        """An input of the graph, or what the layer before makes of it: a bias and Relu."""
        return self._prepared(self._input(shape), lambda x: self.relu(self.op("Add", x, self.bias(f"before{shape[-1]}", shape[-1]))))

    def image(self, *shape):
        """An input of channels and positions (N, C, ...); the layer before is depthwise."""
        return self._prepared(self._input(shape), lambda x: self._depthwise("before", x, shape[1], len(shape) - 2))

    def _input(self, shape):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape
        return name

    def _prepared(self, name, layer):
        if self.context == "readers":
            self.outputs.append(self.op("Sigmoid", name))
        return layer(name) if self.context in ("after", "within") else name

    def _depthwise(self, name, x, channels, dims):
        return self.relu(self.conv(x, self.weight(f"{name}{channels}_{dims}", channels, 1, *[3] * dims), group=channels))

    def end(self, *values, channels=None, width=None, dims=2):
        """Names the results. A layer after them: depthwise for `channels`, a bias for a last axis of `width`, else Sigmoid."""
        for value in values:
            if self.context in ("before", "within"):
                if channels:
                    value = self._depthwise("after", value, channels, dims)
                elif width:
                    value = self.relu(self.op("Add", value, self.weight(f"after{width}", width)))
                else:
                    value = self.op("Sigmoid", value)
            self.outputs.append(value)

    def weight(self, name, *shape, scale=None, positive=False):
        """Random numbers that keep the size of activations: the deviation is 1 / sqrt(products summed)."""
        name = f"{name}.{self.part}"
        if name not in self.constants:
            random = numpy.random.default_rng([self.seed, zlib.crc32(f"{self.name}/{name}".encode())])
            values = random.standard_normal(shape) * (scale or 1 / numpy.sqrt(max(1, numpy.prod(shape[1:]))))
            self.constants[name] = (abs(values) + 0.5 if positive else values).astype(numpy.float32)
        if self.constants[name].shape != shape:
            raise ValueError(f"{self.name}: weight {name} has two shapes, {self.constants[name].shape} and {shape}")
        return name

    def matrix(self, name, rows, columns):
        return self.weight(name, rows, columns, scale=1 / numpy.sqrt(rows))

    def bias(self, name, count):
        return self.weight(name, count, scale=0.5)

    def constant(self, values, name=None):
        """Known numbers: integers are int64, others float32."""
        array = numpy.asarray(values)
        array = array if array.dtype == bool else array.astype(numpy.float32 if array.dtype.kind == "f" else numpy.int64)
        self.known += 1
        name = name or f"{'expert' if self.expert else 'naive'}{self.known}"
        self.constants[name] = array
        return name

    def scalar(self, value):
        return self.constant(float(value))

    def relu(self, x):
        return self.op("Relu", x)

    def add(self, *terms):
        total = terms[0]
        for term in terms[1:]:
            total = self.op("Add", total, term)
        return total

    def matmul(self, a, b):
        return self.op("MatMul", a, b)

    def linear(self, x, w, b=None):
        y = self.op("MatMul", x, w)
        return self.op("Add", y, b) if b else y

    def conv(self, x, w, bias=None, pads=None, stride=1, dilation=1, group=1):
        """Of a weight in `constants`: the padding keeps the extent unless `pads` gives (before, after) of every spatial axis."""
        return self.conv_of(self.constants[w].shape[2:], x, w, bias, pads, stride, dilation, group)

    def conv_of(self, kernel, x, w, bias=None, pads=None, stride=1, dilation=1, group=1):
        """Of a computed weight with this kernel."""
        pads = [(dilation * (k // 2),) * 2 for k in kernel] if pads is None else pads
        dims = len(kernel)
        return self.op("Conv", x, w, *([bias] if bias else []), kernel_shape=list(kernel), strides=[stride] * dims,
                       dilations=[dilation] * dims, pads=[p[0] for p in pads] + [p[1] for p in pads], group=group)

    def pool(self, kind, x, kernel, stride, dims=2, pad=0, **attributes):
        return self.op(f"{kind}Pool", x, kernel_shape=[kernel] * dims, strides=[stride] * dims, pads=[pad] * 2 * dims, **attributes)

    def slice(self, x, axes, begins, ends, steps=None):
        return self.op("Slice", x, self.constant(begins), self.constant(ends), self.constant(axes),
                       *([self.constant(steps)] if steps else []))

    def split(self, x, axis, sizes):
        return self.op("Split", x, self.constant(sizes), outputs=len(sizes), axis=axis)

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.constant(shape))

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=list(perm))

    def concat(self, axis, *parts):
        return self.op("Concat", *parts, axis=axis)

    def expand(self, x, *shape):
        return self.op("Expand", x, self.constant(shape))

    def sum(self, x, *axes, keep=1):
        return self.op("ReduceSum", x, self.constant(axes), keepdims=keep)

    def mean(self, x, *axes, keep=1):
        return self.op("ReduceMean", x, axes=list(axes), keepdims=keep)

    def norm(self, x, name, width):
        scale, shift = self.weight(f"{name}.scale", width, positive=True), self.bias(f"{name}.shift", width)
        return self.op("LayerNormalization", x, scale, shift, axis=-1)

    def bytes(self):
        """The model. Both forms name their outputs y0, y1, ..., by which verifiers match them."""
        names = {value: f"y{k}" for k, value in enumerate(self.outputs)}

        def renamed(values):
            return [names.get(value, value) for value in values]
        nodes = [onnx_bytes.node(kind, name, renamed(inputs), renamed(results), attributes)
                 for kind, name, inputs, results, attributes in self.nodes]
        return onnx_bytes.model(self.name, nodes, self.constants, self.inputs, renamed(self.outputs))
