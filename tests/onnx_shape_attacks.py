"""Imports the node tests of the onnx package with one input changed: another shape, another element type, or left out.

usage: python3 -m tests.onnx_shape_attacks --mendel build/release/mendel [--only SUBSTRING] [--keep DIR]

Every model must be imported or refused. Exit code 1: `mendel inspect` crashed, reported an internal error or took 20 s for
one; --keep writes these models to DIR. Needs onnx (scripts/soak).
"""
import argparse
import copy
import pathlib
import subprocess
import sys
import tempfile
import warnings

import onnx.backend.test.loader
from onnx import TensorProto

SHAPES = ([], [0], [1], [2], [1, 0], [2, 3], [0, 0, 0], [2, 3, 4], [1, 2, 3, 4], [1, 1, 1, 1, 1])
DTYPES = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL)


def changed(model):
    """(what, model) for every change of one input. Long models are function bodies, whose nodes have tests of their own."""
    if not 0 < len(model.graph.node) <= 3:
        return
    for k, given in enumerate(model.graph.input):
        if not given.type.HasField("tensor_type"):
            continue
        for shape in SHAPES:
            other = copy.deepcopy(model)
            tensor = other.graph.input[k].type.tensor_type
            tensor.ClearField("shape")
            tensor.shape.SetInParent()
            for extent in shape:
                tensor.shape.dim.add().dim_value = extent
            yield f"{given.name} has the shape {shape}", other
        for dtype in DTYPES:
            other = copy.deepcopy(model)
            other.graph.input[k].type.tensor_type.elem_type = dtype
            yield f"{given.name} has the type {dtype}", other
        other = copy.deepcopy(model)
        for node in other.graph.node:
            node.input[:] = ["" if name == given.name else name for name in node.input]
        yield f"{given.name} is left out", other


def fault(mendel, path):
    """What is wrong with the answer on the model at `path`; None: nothing."""
    try:
        done = subprocess.run([mendel, "inspect", path], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired:
        return "no answer in 20 s"
    if done.returncode < 0 or done.returncode >= 128:
        return f"exit status {done.returncode}"
    return "internal error" if "nternal error" in done.stderr else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mendel", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tried, faults, seen = 0, 0, set()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for case in onnx.backend.test.loader.load_model_tests(kind="node"):
            if args.only not in case.name or case.model is None:
                continue
            for what, model in changed(case.model):
                text = model.SerializeToString()
                if text in seen:
                    continue
                seen.add(text)
                path.write_bytes(text)
                tried += 1
                wrong = fault(args.mendel, path)
                if wrong is None:
                    continue
                faults += 1
                print(f"{case.name}: {what}: {wrong}", flush=True)
                if args.keep:
                    args.keep.mkdir(parents=True, exist_ok=True)
                    (args.keep / f"{faults}.onnx").write_bytes(text)
    print(f"{tried} models, {faults} faults")
    sys.exit(1 if faults or not tried else 0)


if __name__ == "__main__":
    main()
