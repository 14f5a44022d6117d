"""Runs the node tests of the onnx package on the reference and the CPU backend and counts the results by reason.

usage: python3 -m tests.onnx_node_tests --runner build/release/tests/onnx_testdata_test [--only SUBSTRING] [--names]

Each test is written to a folder in the layout of ONNX's test data; the runner imports and runs them one by one. A test passes,
is refused (by an operator, a type, a value known only at run time), is wrong, or ends the runner (crash). Exit code 1: some
test was wrong or crashed. Needs onnx (scripts/soak).
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnx.backend.test.loader
from onnx import numpy_helper

BACKENDS = ("reference", "cpu")
_RUN_TIME = re.compile("depends? on run-time values|run-time condition")
_CLASSES = (
    ("element type", re.compile(r"element type (\w+) is not supported")),
    ("operator", re.compile(r"(operator '[^']*'(?: of domain '[^']*')?)")),
    ("attribute", re.compile(r"(\(\w+\)).*(attribute '[^']*')")),
    ("run-time value", re.compile(r"\((\w+)\).*(?:depends? on run-time values|run-time)")),
    ("not a tensor", re.compile(r"(not a tensor)")),
)


def to_bytes(value, name):
    """A value of a data set as the protobuf message that its type calls for."""
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    if isinstance(value, list):
        return numpy_helper.from_list(value, name).SerializeToString()
    if value is None:
        return numpy_helper.from_optional(None, name).SerializeToString()
    return numpy_helper.from_array(numpy.asarray(value), name).SerializeToString()


def write(case, folder):
    """model.onnx, tolerance and test_data_set_K/{input,output}_K.pb."""
    folder.mkdir(parents=True)
    folder.joinpath("model.onnx").write_bytes(case.model.SerializeToString())
    folder.joinpath("tolerance").write_text(f"{case.rtol} {case.atol}\n")
    for k, sides in enumerate(case.data_sets):
        data = folder.joinpath(f"test_data_set_{k}")
        data.mkdir()
        for prefix, infos, values in zip(("input", "output"), (case.model.graph.input, case.model.graph.output), sides):
            for at, value in enumerate(values):
                name = infos[at].name if at < len(infos) else ""
                data.joinpath(f"{prefix}_{at}.pb").write_bytes(to_bytes(value, name))


def run(args, root, backend):
    """The result of each test by name: (passed | refused | wrong | crash, the reason)."""
    results = {}
    skip = set()
    while True:
        environment = {**os.environ, "MENDEL_ONNX_TESTDATA": str(root), "MENDEL_ONNX_TESTDATA_SKIP": ",".join(sorted(skip))}
        process = subprocess.run([args.runner, f"--gtest_filter=*OnnxTestData.EveryImportedCasePasses/{backend}"],
                                 capture_output=True, text=True, errors="replace", env=environment)
        begun = None
        for line in process.stdout.splitlines():
            kind, _, rest = line.partition(" ")
            name, _, reason = rest.partition(": ")
            if kind == "case":
                begun = rest
            elif kind in ("passed", "refused", "wrong") and begun == name:
                results[name] = kind, reason
                begun = None
        if begun is None:
            return results
        results[begun] = "crash", process.stderr.strip()[-200:]
        skip.add(begun)


def reason_class(reason):
    for kind, pattern in _CLASSES:
        found = pattern.search(reason)
        if found:
            return kind, " ".join(part for part in found.groups() if part) if found.groups() else ""
    return "other", re.sub(r"[\d.]+", "_", reason)[:100]


def report(backend, results, names):
    counts = collections.Counter(kind for kind, _ in results.values())
    print(f"{backend}: {len(results)} tests: " + ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "refused", "wrong", "crash")))
    reasons = collections.defaultdict(list)
    for name, (kind, reason) in sorted(results.items()):
        if kind == "refused":
            reasons[reason_class(reason)].append(name)
        elif kind != "passed":
            print(f"  {kind} {name}: {reason}")
    by_class = collections.Counter()
    for (kind, _), tests in reasons.items():
        by_class[kind] += len(tests)
    for kind, count in by_class.most_common():
        print(f"  refused {count:4}: {kind}")
    for (kind, what), tests in sorted(reasons.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(tests if names else tests[:2]) + ("" if names or len(tests) < 3 else ", ...")
        print(f"  refused {len(tests):4}: {kind}: {what} [{shown}]")
    return counts["wrong"] + counts["crash"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True, help="the program onnx_testdata_test")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--names", action="store_true", help="print the name of every refused test")
    parser.add_argument("--least", type=int, default=0, help="fail when fewer tests pass")
    args = parser.parse_args()
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = onnx.backend.test.loader.load_model_tests(kind="node")
    print(f"onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}: {len(cases)} node tests")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for case in cases:
            if args.only in case.name:
                write(case, root.joinpath(case.name))
        for backend in BACKENDS:
            results = run(args, root, backend)
            bad += report(backend, results, args.names)
            passed = sum(kind == "passed" for kind, _ in results.values())
            if passed < args.least:
                print(f"{backend}: only {passed} tests passed, expected {args.least}")
                bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
