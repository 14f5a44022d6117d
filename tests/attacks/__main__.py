"""Draws attacks, asks `mendel verify`, and counts wrong verdicts by class.

usage: python3 -m tests.attacks --mendel build/release/mendel [--pairs N] [--seed S] [--jobs 2] [--class NAME] [--keep DIR]

A pair that differs counts only where ONNX Runtime or the reference evaluator of the onnx package sees it differ; one that is
equal, only where they do not. Exit code 1: some verdict was wrong. Needs onnx and onnxruntime (scripts/soak).
"""
import argparse
import collections
import json
import multiprocessing
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.reference
import onnxruntime

from tests.attacks import definedness, identities, infinities, integers, literals, recurrences, rewrites, structures, symbolic, zeros  # noqa: F401 (registers)
from tests.attacks.pair import CLASSES

EQUAL = ("equivalent", "equivalent-after-refit")
DIFFERENT = ("different", "partial")


def outputs_of(model, feed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feed)
    except Exception:  # what it has no kernel for
        with numpy.errstate(all="ignore"):
            return onnx.reference.ReferenceEvaluator(model).run(None, feed)


def differs(x, y, tolerance):
    if x.shape != y.shape:
        return True
    if x.dtype.kind != "f":
        return bool((x != y).any())
    x, y = x.astype(numpy.float64), y.astype(numpy.float64)
    finite = numpy.isfinite(x) & numpy.isfinite(y)
    if (numpy.isfinite(x) != numpy.isfinite(y)).any():
        return True
    x, y = x[finite], y[finite]
    return bool((numpy.abs(x - y) > tolerance * numpy.maximum(1e-30, numpy.abs(x))).any())


def seen_to_differ(pair):
    for feed in pair.feeds:
        a, b = outputs_of(pair.a, feed), outputs_of(pair.b, feed)
        if any(differs(x, y, pair.tolerance) for x, y in zip(a, b)):
            return True
    return False


def classify(job):
    name, seed, mendel, keep, limit = job
    pair = CLASSES[name](random.Random(f"{name} {seed}"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            seen = seen_to_differ(pair)
        except Exception:  # neither evaluator has the operator for these operands
            seen = pair.equal
        if seen == pair.equal:
            return name, seed, pair.what, "not seen", ""
        files = [str(pathlib.Path(folder, f)) for f in ("a.onnx", "b.onnx")]
        onnx.save(pair.a, files[0])
        onnx.save(pair.b, files[1])
        run = subprocess.run([mendel, "verify", *files, "--json", "--time-limit", f"{limit}s", *pair.options],
                             capture_output=True, text=True, timeout=60 + 2 * limit)
        try:
            said = json.loads(run.stdout)
        except json.JSONDecodeError:
            said = {"error": {"message": f"exit {run.returncode}: {run.stderr[-200:]}"}}
        verdict = said.get("verdict") or "refused: " + said["error"]["message"]
        wrong = verdict in (DIFFERENT if pair.equal else EQUAL) or run.returncode < 0 or run.returncode > 3
        if wrong and keep:
            for file, model in zip(("a", "b"), (pair.a, pair.b)):
                onnx.save(model, str(pathlib.Path(keep, f"{name}-{seed}-{file}.onnx")))
        status = "WRONG" if wrong else ("decided" if verdict in EQUAL + DIFFERENT else "undecided")
        return name, seed, f"{pair.what} ({'equal' if pair.equal else 'differs'})", status, verdict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mendel", required=True)
    parser.add_argument("--pairs", type=int, default=200, help="of each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--class", dest="only")
    parser.add_argument("--keep", help="folder for the models of wrong verdicts")
    parser.add_argument("--limit", type=int, default=10, help="seconds a pair")
    args = parser.parse_args()
    names = [args.only] if args.only else sorted(CLASSES)
    if args.keep:
        pathlib.Path(args.keep).mkdir(parents=True, exist_ok=True)
    jobs = [(name, args.seed + k, args.mendel, args.keep, args.limit) for name in names for k in range(args.pairs)]
    table = collections.defaultdict(collections.Counter)
    undecided = collections.Counter()
    wrong = []
    with multiprocessing.Pool(args.jobs) as pool:
        for name, seed, what, status, verdict in pool.imap_unordered(classify, jobs, chunksize=8):
            table[name][status] += 1
            if status == "WRONG":
                wrong.append((name, seed, what, verdict))
            if status == "undecided":
                undecided[name, what, verdict[:60]] += 1
    print(f"{'class':28}{'decided':>9}{'undecided':>11}{'not seen':>10}{'WRONG':>7}")
    for name in names:
        row = table[name]
        print(f"{name:28}{row['decided']:>9}{row['undecided']:>11}{row['not seen']:>10}{row['WRONG']:>7}")
    for (name, what, verdict), count in undecided.most_common(40):
        print(f"undecided {count:5} {name}: {what}: {verdict}")
    for name, seed, what, verdict in wrong[:60]:
        print(f"WRONG {name} seed {seed}: {what}: {verdict}; --class {name} --seed {seed} --pairs 1 --keep DIR")
    total = sum(sum(row.values()) for row in table.values())
    print(f"{total - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
