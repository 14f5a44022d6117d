"""What the classes of attacks share: pairs, a builder of models and the registry."""
import dataclasses
import random

import numpy
from onnx import TensorProto, helper, numpy_helper

DTYPES = {
    "f32": (TensorProto.FLOAT, numpy.float32), "f64": (TensorProto.DOUBLE, numpy.float64),
    "f16": (TensorProto.FLOAT16, numpy.float16), "i64": (TensorProto.INT64, numpy.int64),
    "i32": (TensorProto.INT32, numpy.int32), "i8": (TensorProto.INT8, numpy.int8),
    "u8": (TensorProto.UINT8, numpy.uint8), "bool": (TensorProto.BOOL, numpy.bool_),
}


@dataclasses.dataclass
class Pair:
    """Two models. `equal`: their truth. `feeds`: inputs that show a difference, or try to."""
    a: object
    b: object
    equal: bool
    feeds: list
    what: str
    options: tuple = ()
    tolerance: float = 1e-4


CLASSES = {}


def attack(function):
    """Registers a class: a function of a random.Random that yields a Pair."""
    CLASSES[function.__name__] = function
    return function


class Model:
    """Builds one ONNX model node by node; values are names."""

    def __init__(self, opset=17):
        self.nodes, self.inputs, self.outputs, self.initializers = [], [], [], []
        self.count, self.opset = 0, opset

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, DTYPES[dtype][0], shape))
        return name

    def constant(self, values, dtype="f32"):
        name = self.name()
        array = numpy.asarray(values, dtype=DTYPES[dtype][1])
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind, *operands, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, value, dtype, name=None):
        name = name or f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, DTYPES[dtype][0], None))
        return self

    def build(self):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def decorate(rng, model, value, shape, dtype="f32"):
    """An equal value, written otherwise. `shape`: the value's."""
    for _ in range(rng.randrange(3)):
        kind = rng.randrange(5)
        if kind == 0:
            value = model.op("Identity", value)
        elif kind == 1 and len(shape) > 1:
            perm = list(range(len(shape)))
            rng.shuffle(perm)
            back = [perm.index(k) for k in range(len(shape))]
            value = model.op("Transpose", model.op("Transpose", value, perm=perm), perm=back)
        elif kind == 2:
            flat = model.op("Reshape", value, model.constant([-1], "i64"))
            value = model.op("Reshape", flat, model.constant(list(shape), "i64"))
        elif kind == 3:
            value = model.op("Mul", value, model.constant(1, dtype))
        elif len(shape) > 0 and shape[-1] > 1:
            cut = rng.randrange(1, shape[-1])
            axis = len(shape) - 1
            split = model.constant([cut, shape[-1] - cut], "i64")
            parts = model.op("Split", value, split, outputs=2, axis=axis)
            value = model.op("Concat", *parts, axis=axis)
    return value


def floats(rng, shape, low=-2.0, high=2.0, dtype="f32"):
    array = numpy.array([rng.uniform(low, high) for _ in range(int(numpy.prod(shape)))])
    return array.reshape(shape).astype(DTYPES[dtype][1])
