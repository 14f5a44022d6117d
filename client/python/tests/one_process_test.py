"""Mendel and ONNX Runtime in one process: same results, whichever comes first. usage: one_process_test.py EXAMPLES FIRST

FIRST is "mendel" or "onnxruntime": the one that is imported and used before the other."""
import importlib
import pathlib
import sys
import threading

import numpy

EXAMPLES, FIRST = pathlib.Path(sys.argv[1]), sys.argv[2]
SECOND = {"mendel": "onnxruntime", "onnxruntime": "mendel"}[FIRST]


def session(module):
    options = module.SessionOptions()
    options.intra_op_num_threads = 2
    return module.InferenceSession(str(EXAMPLES / "camera.onnx"), options, providers=["CPUExecutionProvider"])


first = session(importlib.import_module(FIRST))
value = first.get_inputs()[0]
x = numpy.random.default_rng(1).standard_normal(value.shape).astype("float32")
expected = first.run(None, {value.name: x})
second = session(importlib.import_module(SECOND))
for one, other in zip(first.get_inputs() + first.get_outputs(), second.get_inputs() + second.get_outputs()):
    assert (one.name, one.type, one.shape) == (other.name, other.type, other.shape), (one, other)
wrong = []


def work(runner):
    for _ in range(10):
        for want, got in zip(expected, runner.run(None, {value.name: x})):
            if not numpy.allclose(got, want, rtol=1e-3, atol=1e-3):
                wrong.append(float(numpy.abs(got - want).max()))


threads = [threading.Thread(target=work, args=(runner,)) for runner in (first, second, first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
import mendel  # noqa: E402

plan = mendel.optimize(EXAMPLES / "camera.onnx", budget=1, threads=1, cache="cache")
for want, got in zip(expected, plan.run({value.name: x}).values()):
    numpy.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
with open("/proc/self/maps") as maps:
    loaded = sorted({line.split()[-1].rsplit("/", 1)[-1] for line in maps if ".so" in line})
print(f"{FIRST} first: equal; OpenMP and protobuf libraries:", [name for name in loaded if "gomp" in name or "protobuf" in name])
