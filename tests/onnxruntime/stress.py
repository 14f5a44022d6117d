"""Mendel's provider under use: sessions closed while plans are searched, sessions in threads, many sessions, unregistering.

usage: stress.py [--library LIB] [--sessions 1000] [--growth 24]   (without LIB: the package onnxruntime-ep-mendel)

--growth is what memory may grow by, in MiB, from the first fifth of the sessions to the last one. Exit code 1 if a check fails.
"""
import argparse
import gc
import pathlib
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NUMBERS = np.random.default_rng(3)


def conv_model(path, channels, size, layers):
    """Convolutions with a node of ONNX Runtime's own in the middle."""
    nodes, constants, last = [], [], "x"
    for k in range(layers):
        constants.append(numpy_helper.from_array((NUMBERS.standard_normal((channels, channels, 3, 3)) / (9 * channels) ** 0.5).astype(np.float32), f"w{k}"))
        nodes += [helper.make_node("Conv", [last, f"w{k}"], [f"c{k}"], pads=[1, 1, 1, 1]), helper.make_node("Relu", [f"c{k}"], [f"r{k}"])]
        last = f"r{k}"
        if k == layers // 2:
            constants += [numpy_helper.from_array(np.array([-1, size], np.int64), "flat"), numpy_helper.from_array(np.eye(size, dtype=np.float32), "eye"),
                          numpy_helper.from_array(np.array([1, channels, size, size], np.int64), "back")]
            nodes += [helper.make_node("Reshape", [last, "flat"], ["f"]), helper.make_node("FusedGemm", ["f", "eye"], ["g"], domain="com.microsoft", activation="Relu"),
                      helper.make_node("Reshape", ["g", "back"], ["h"])]
            last = "h"
    shape = [1, channels, size, size]
    graph = helper.make_graph(nodes, "convs", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def device():
    return [found for found in onnxruntime.get_ep_devices() if found.ep_name == "MendelExecutionProvider"][0]


def session_of(path, **provider_options):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    options.add_provider_for_devices([device()], {name: str(value) for name, value in provider_options.items()})
    return onnxruntime.InferenceSession(path, options)


class Checked:
    """A model with inputs and the CPU provider's outputs."""

    def __init__(self, path, size):
        self.path = path
        alone = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.feeds = [{"x": NUMBERS.standard_normal(size).astype(np.float32)} for _ in range(3)]
        self.results = [alone.run(None, feed)[0] for feed in self.feeds]

    def run(self, session):
        """Raises an error unless all results are right."""
        for feed, expected in zip(self.feeds, self.results):
            difference = np.abs(session.run(None, feed)[0] - expected).max()
            if not difference <= 2e-4 * np.abs(expected).max():
                raise AssertionError(f"{self.path}: outputs differ by {difference}")


def close_while_searching(model):
    longest = 0.0
    for delay in (0, 0.02, 0.2, 0.7, 1.5, 2.5):
        session = session_of(model.path, budget_s=3, background=1)
        model.run(session)
        time.sleep(delay)
        model.run(session)
        begin = time.perf_counter()
        del session
        gc.collect()
        longest = max(longest, time.perf_counter() - begin)
    print(f"closed while searching: 6 sessions, the longest took {longest:.2f} s", flush=True)


def in_threads(models, shared):
    errors = []

    def work(model, session):
        try:
            for _ in range(30):
                model.run(session)
        except Exception as error:
            errors.append(error)

    if shared:
        session = session_of(models[0].path, budget_s=1, background=1)
        jobs = [(models[0], session), (models[0], session), (models[0], session)]
    else:
        jobs = [(model, session_of(model.path, budget_s=1, background=1)) for model in models]
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    print(f"{len(jobs)} threads, {'one session' if shared else 'a session each'}: all results right", flush=True)


def resident_mib():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def many_sessions(model, count, growth):
    marks = {}
    for number in range(1, count + 1):
        session = session_of(model.path)
        model.run(session)
        del session
        if number in (count // 5, count // 2, count):
            gc.collect()
            marks[number] = resident_mib()
    text = ", ".join(f"{mib:.0f} MiB after {number}" for number, mib in marks.items())
    print(f"{count} sessions: {text}", flush=True)
    grown = marks[count] - marks[count // 5]
    if grown > growth:
        raise AssertionError(f"memory grew by {grown:.0f} MiB; {growth} are allowed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--growth", type=float, default=24)
    options = parser.parse_args()
    if options.library is None:
        import onnxruntime_ep_mendel
        options.library = onnxruntime_ep_mendel.get_library_path()
    library = str(pathlib.Path(options.library).resolve())
    onnxruntime.register_execution_provider_library("mendel", library)
    with tempfile.TemporaryDirectory() as folder:
        large = Checked(conv_model(f"{folder}/large.onnx", 32, 56, 8), (1, 32, 56, 56))
        small = Checked(conv_model(f"{folder}/small.onnx", 16, 24, 3), (1, 16, 24, 24))
        close_while_searching(large)
        in_threads([large, small], shared=False)
        in_threads([large], shared=True)
        many_sessions(small, options.sessions, options.growth)
        for _ in range(3):
            onnxruntime.unregister_execution_provider_library("mendel")
            onnxruntime.register_execution_provider_library("mendel", library)
            small.run(session_of(small.path))
        onnxruntime.unregister_execution_provider_library("mendel")
        print("unregistered and registered again three times: all results right", flush=True)


if __name__ == "__main__":
    sys.exit(main())
