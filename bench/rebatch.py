#!/usr/bin/env python3
"""Writes a model for another batch size, and checks by ONNX Runtime that it computes, image by image, what the model computes.

usage: bench/rebatch.py MODEL.onnx OUT.onnx BATCH      (needs onnx, onnxruntime and numpy; bench/peers --batch calls it in its environment)

The batch is the first open or single dimension of every input. Constant shapes of Reshape and Expand that begin with a batch of one get
the new one. Exit code 1 and one line where that is not enough.
"""
import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-4  # of the largest output: another batch may run by another algorithm


def dimensions(value):
    return [d.dim_value if d.HasField("dim_value") else 0 for d in value.type.tensor_type.shape.dim]


def batch_axis(value):
    """The first dimension that is open or one."""
    for axis, extent in enumerate(dimensions(value)):
        if extent <= 1:
            return axis
    raise ValueError(f"input '{value.name}' has no batch dimension: {dimensions(value)}")


def constants(graph):
    known = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = node.attribute[0].t
    return known


def rebatch(model, batch):
    graph = model.graph
    known = constants(graph)
    inputs = [value for value in graph.input if value.name not in known]
    for value in inputs:
        value.type.tensor_type.shape.dim[batch_axis(value)].dim_value = batch
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    for k, node in enumerate(graph.node):
        shape = known.get(node.input[1]) if node.op_type in ("Reshape", "Expand") else None
        if shape is None:
            continue
        target = onnx.numpy_helper.to_array(shape).copy()
        if len(target) > 1 and target[0] == 1:
            target[0] = batch
            name = f"{node.input[1]}_for_batch_{k}"
            graph.initializer.append(onnx.numpy_helper.from_array(target, name))
            node.input[1] = name
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def check(old_path, new_path, batch):
    """What the first and the last image give in the batch and alone."""
    old, new = (onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]) for path in (old_path, new_path))
    axes = {v.name: batch_axis(v) for v in onnx.load(old_path, load_external_data=False).graph.input if v.name in
            {i.name for i in old.get_inputs()}}
    random = numpy.random.default_rng(1)
    feed = {i.name: random.standard_normal(i.shape).astype(numpy.float32) for i in new.get_inputs()}
    together = new.run(None, feed)
    for k in {0, batch - 1}:
        alone = old.run(None, {name: numpy.take(value, [k], axes[name]) for name, value in feed.items()})
        for whole, one in zip(together, alone):
            axis = next((a for a in range(whole.ndim) if whole.shape[a] != one.shape[a]), None)
            if axis is None or whole.shape[axis] != batch or one.shape[axis] != 1:
                raise ValueError(f"an output is {list(whole.shape)} for the batch and {list(one.shape)} for one")
            error = numpy.abs(numpy.take(whole, [k], axis) - one).max() / max(numpy.abs(one).max(), 1e-30)
            if not error <= TOLERANCE:
                raise ValueError(f"image {k} differs by {error:.1e} of the largest output")


def main():
    old_path, new_path, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        onnx.save(rebatch(onnx.load(old_path), batch), new_path)
        check(old_path, new_path, batch)
    except Exception as error:  # whatever onnx or onnxruntime raises: the model has no form for this batch
        print(f"no batch of {batch}: {str(error).splitlines()[0][:160]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
