"""Writes a small transformer with random weights, open batch and open sequence. usage: make_encoder.py MODEL.onnx"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, LAYERS = 128, 4, 3
numbers = np.random.default_rng(5)
nodes, constants = [], []


def constant(array):
    constants.append(numpy_helper.from_array(array, f"c{len(constants)}"))
    return constants[-1].name


def weight(*shape):
    return constant((numbers.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))


def add(operator, inputs, **attributes):
    nodes.append(helper.make_node(operator, inputs, [f"v{len(nodes)}"], **attributes))
    return nodes[-1].output[0]


def heads(x, order):
    split = add("Reshape", [add("MatMul", [x, weight(WIDTH, WIDTH)]), constant(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))])
    return add("Transpose", [split], perm=order)


x = add("Gather", [weight(1000, WIDTH), "input_ids"])
mask = add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
away = add("Mul", [add("Sub", [constant(np.float32(1)), mask]), constant(np.float32(-1e4))])
away = add("Unsqueeze", [away, constant(np.array([1, 2], np.int64))])
for _ in range(LAYERS):
    scores = add("MatMul", [heads(x, [0, 2, 1, 3]), heads(x, [0, 2, 3, 1])])
    scores = add("Add", [add("Mul", [scores, constant(np.float32((WIDTH / HEADS) ** -0.5))]), away])
    mixed = add("MatMul", [add("Softmax", [scores], axis=-1), heads(x, [0, 2, 1, 3])])
    flat = add("Reshape", [add("Transpose", [mixed], perm=[0, 2, 1, 3]), constant(np.array([0, 0, WIDTH], np.int64))])
    x = add("LayerNormalization", [add("Add", [x, flat]), weight(WIDTH), weight(WIDTH)], axis=-1)
    wide = add("MatMul", [add("Relu", [add("MatMul", [x, weight(WIDTH, 4 * WIDTH)])]), weight(4 * WIDTH, WIDTH)])
    x = add("LayerNormalization", [add("Add", [x, wide]), weight(WIDTH), weight(WIDTH)], axis=-1)
open_shape = ["batch", "sequence"]
graph = helper.make_graph(nodes, "encoder", [helper.make_tensor_value_info(name, TensorProto.INT64, open_shape) for name in ("input_ids", "attention_mask")],
                          [helper.make_tensor_value_info(x, TensorProto.FLOAT, open_shape + [WIDTH])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
onnx.save(model, sys.argv[1])
