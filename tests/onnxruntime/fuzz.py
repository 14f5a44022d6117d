"""Random models in which nodes that Mendel does not support are between others: the provider's results against the CPU provider's.

usage: fuzz.py [--library LIB] [--count 200] [--seed 1] [--keep DIR]   (without LIB: the package onnxruntime-ep-mendel)

A failure prints its seed, and keeps the model. Exit code 1 if a result differs, or if no model was divided into parts.
"""
import argparse
import pathlib
import random
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
TOLERANCE = 2e-4  # of the largest element


class Maker:
    """A graph of f32 matrices. `values` are (name, rows, columns); rows may be the symbolic dimension, by its name."""

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.rows = self.random.choice([8, 24, 64, "rows"])
        self.columns = self.random.choice([16, 32, 64])
        self.nodes, self.constants, self.values, self.count, self.foreign = [], [], [("x", self.columns)], 0, 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape):
        return self.constant((self.numbers.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def add(self, operator, inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=f"node{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def any(self, columns=None):
        fitting = [value for value in self.values if columns is None or value[1] == columns]
        return self.random.choice(fitting[-4:])

    def matmul(self):
        name, columns = self.any()
        wide = self.random.choice([16, 32, 64])
        return self.add("Tanh", [self.add("MatMul", [name, self.weight(columns, wide)])]), wide

    def pair(self):
        name, columns = self.any()
        return self.add(self.random.choice(["Add", "Mul", "Sub", "Max"]), [name, self.any(columns)[0]]), columns

    def unary(self):
        name, columns = self.any()
        return self.add(self.random.choice(["Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Identity", "Softplus"]), [name]), columns

    def softmax(self):
        name, columns = self.any()
        return self.add("Softmax", [name], axis=-1), columns

    def normalization(self):
        name, columns = self.any()
        return self.add("LayerNormalization", [name, self.weight(columns), self.weight(columns)], axis=-1), columns

    def centered(self):
        name, columns = self.any()
        return self.add("Sub", [name, self.add("ReduceMean", [name], axes=[1], keepdims=1)]), columns

    def join(self):
        (a, wide), (b, other) = self.any(), self.any()
        return (self.add("Concat", [a, b], axis=1), wide + other) if wide + other <= 128 else self.pair()

    def gathered(self):
        name, columns = self.any()
        places = self.constant(self.numbers.permutation(columns).astype(np.int64))
        return self.add("Gather", [name, places], axis=1), columns

    # Nodes that stay with ONNX Runtime.

    def fused_gemm(self):
        name, columns = self.any()
        return self.add("FusedGemm", [name, self.weight(columns, 32)], domain=MICROSOFT, activation="Relu"), 32

    def distances(self):
        name, columns = self.any()
        return self.add("Tanh", [self.add("CDist", [name, self.weight(16, columns)], domain=MICROSOFT, metric="euclidean")]), 16

    def four_bits(self):
        name, columns = self.any()
        if columns % 16 != 0:
            return self.unary()
        blocks = -(-columns // 32)
        bits = self.constant(self.numbers.integers(0, 256, (32, blocks, 16), np.uint8))
        scales = self.constant(self.numbers.random(32 * blocks).astype(np.float32) / 32)
        return self.add("MatMulNBits", [name, bits, scales], domain=MICROSOFT, K=columns, N=32, bits=4, block_size=32), 32

    def through_nonzero(self):
        name, columns = self.any()
        ones = self.add("Ceil", [self.add("Sigmoid", [self.add("Tanh", [name])])])
        places = self.add("Transpose", [self.add("NonZero", [ones])])
        flat = self.add("GatherND", [name, places])
        return self.add("Reshape", [flat, self.constant(np.array([-1, columns], np.int64))]), columns

    def branch(self):
        name, columns = self.any()
        condition = self.add("Greater", [self.add("ReduceMax", [name], keepdims=0), self.constant(np.float32(-1e9))])
        graphs, made = {}, self.name()
        for key, operator in (("then_branch", "Relu"), ("else_branch", "Neg")):
            inner = f"{made}_{key}"
            graphs[key] = helper.make_graph([helper.make_node(operator, [name], [inner])], key, [],
                                            [helper.make_tensor_value_info(inner, TensorProto.FLOAT, [None, columns])])
        return self.add("If", [condition], **graphs), columns

    def model(self):
        own = [self.matmul, self.pair, self.unary, self.softmax, self.normalization, self.centered, self.join, self.gathered]
        foreign = [self.fused_gemm, self.distances, self.four_bits, self.through_nonzero, self.branch]
        for _ in range(self.random.randint(6, 24)):
            other = self.random.random() < 0.25
            self.foreign += other
            self.values.append(self.random.choice(foreign if other else own)())
        outputs = {self.values[-1]} | set(self.random.sample(self.values[1:], 1))
        graph = helper.make_graph(self.nodes, "random", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.rows, self.columns])],
                                  [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, columns]) for name, columns in sorted(outputs)],
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])
        model.ir_version = 8
        return model


def parts_of(session):
    """The number of Mendel's parts."""
    return sum(part.ep_name == "MendelExecutionProvider" for part in session.get_provider_graph_assignment_info())


def differences(path, maker, device, budget):
    """The largest relative difference, over sizes where the rows are open, and the number of Mendel's parts."""
    alone = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_provider_for_devices([device], {"budget_s": str(budget), "threads": str(maker.random.choice([1, 2]))})
    other = onnxruntime.InferenceSession(path, options)
    worst = 0.0
    for rows in [3, 40, 1] if maker.rows == "rows" else [maker.rows, maker.rows]:
        feed = {"x": maker.numbers.standard_normal((rows, maker.columns)).astype(np.float32)}
        for a, b in zip(alone.run(None, feed), other.run(None, feed)):
            if a.shape != b.shape:
                return float("inf"), 0
            both = np.isfinite(a) & np.isfinite(b)
            if not (both == np.isfinite(a)).all() or not (both == np.isfinite(b)).all():
                return float("inf"), 0
            worst = max(worst, float(np.abs(a - b)[both].max(initial=0) / max(np.abs(a)[both].max(initial=0), 1e-6)))
    return worst, parts_of(other)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    options = parser.parse_args()
    if options.library is None:
        import onnxruntime_ep_mendel
        options.library = onnxruntime_ep_mendel.get_library_path()
    onnxruntime.register_execution_provider_library("mendel", str(pathlib.Path(options.library).resolve()))
    device = [found for found in onnxruntime.get_ep_devices() if found.ep_name == "MendelExecutionProvider"][0]
    failed, mixed, all_parts, worst = 0, 0, 0, 0.0
    for seed in range(options.seed, options.seed + options.count):
        maker = Maker(seed)
        path = str(options.keep / f"onnxruntime_fuzz_{seed}.onnx")
        onnx.save(maker.model(), path)
        try:
            difference, parts = differences(path, maker, device, 0.5 if seed % 25 == 0 else 0)
        except Exception as error:  # what one runtime refuses is a failure as well: the CPU provider runs all of them
            print(f"seed {seed}: {path}: {error}", flush=True)
            failed += 1
            continue
        mixed += maker.foreign > 0 and parts > 0
        all_parts += parts
        worst = max(worst, difference) if difference <= TOLERANCE else worst
        if difference > TOLERANCE:
            print(f"seed {seed}: {path}: outputs differ by {difference:.2e} of the largest", flush=True)
            failed += 1
        else:
            pathlib.Path(path).unlink()
    print(f"{options.count} models, {mixed} with foreign nodes beside parts, {all_parts} parts, {failed} failed, largest difference {worst:.1e}")
    sys.exit(1 if failed or mixed == 0 else 0)


if __name__ == "__main__":
    main()
