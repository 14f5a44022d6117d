"""Small files that request much: time and memory limits of `mendel verify` hold, and no model ends it otherwise than by a verdict.

usage: python3 -m tests.attacks.hostile --mendel build/release/mendel [--limit 20] [--memory 6GB] [--only NAME]

Each model is compared with itself and with a changed copy. Exit code 1: a run ended otherwise than with 0 to 3, took ten seconds more
than its limit, held more than its memory, or gave a wrong verdict. Needs onnx (scripts/soak).
"""
import argparse
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time

import onnx

from tests.attacks.pair import Model

GRACE = 10
MODELS = {}


def hostile(function):
    """Registers a model: a function of a Model and of whether it is the changed copy; it yields the output."""
    MODELS[function.__name__] = function
    return function


def _sum(m, x):
    return m.op("ReduceSum", x, keepdims=0)


def _scaled(m, x, changed):
    return m.op("Mul", x, m.constant(2 if changed else 1))


@hostile
def chain_of_300_extremes(m, changed):
    x = m.input("x", "f32", [4])
    for k in range(300):
        x = m.op("Max", x, m.op("Mul", x, m.constant(0.3 * (k % 7) + (0.01 if changed and k == 150 else 0))))
    return x


@hostile
def pool_over_60000(m, changed):
    x = m.input("x", "f32", [1, 1, 1, 60020])
    return m.op("Add", m.op("MaxPool", x, kernel_shape=[1, 60000]), m.constant(1 if changed else 0))


@hostile
def expanded_to_2_28(m, changed):
    x = m.op("Relu", m.op("Expand", m.input("x", "f32", [1]), m.constant([2**28], "i64")))
    return _sum(m, _scaled(m, x, changed))


@hostile
def padded_by_2_35(m, changed):
    x = m.op("Pad", m.input("x", "f32", [4]), m.constant([0, 2**35], "i64"))
    return _sum(m, _scaled(m, x, changed))


@hostile
def outer_product_by_its_transpose(m, changed):
    n = 30000
    p = m.op("MatMul", m.input("x", "f32", [n, 1]), m.input("y", "f32", [1, n]))
    return m.op("Add", m.op("MatMul", p, m.op("Transpose", p, perm=[1, 0])), m.constant(1 if changed else 0))


@hostile
def nan_slope(m, changed):
    return m.op("LeakyRelu", m.input("x", "f32", [4]), alpha=0.1 if changed else float("nan"))


@hostile
def nan_epsilon(m, changed):
    x = m.input("x", "f32", [1, 2, 3])
    return m.op("BatchNormalization", x, *[m.constant([1, 2])] * 4, epsilon=1e-5 if changed else float("nan"))


@hostile
def nan_limits(m, changed):
    return m.op("Clip", m.input("x", "f32", [4]), m.constant(-1 if changed else float("nan")), m.constant(1))


@hostile
def infinite_exponent(m, changed):
    x = m.input("x", "f32", [1, 3, 4])
    return m.op("LRN", x, size=3, beta=0.75 if changed else float("inf"))


@hostile
def chain_of_2000_functions(m, changed):
    x = m.input("x", "f32", [16])
    for k in range(500):
        x = m.op("Add", m.op("Tanh", x), m.op("Mul", m.op("Sin", x), m.constant(0.5 + (0.1 if changed and k == 250 else 0))))
    return x


@hostile
def squared_100_times(m, changed):
    x = m.input("x", "f32", [4])
    for k in range(100):
        x = m.op("Mul", x, x)
    return _scaled(m, x, changed)


@hostile
def selects_of_selects(m, changed):
    x = m.input("x", "f32", [4])
    for k in range(100):
        x = m.op("Where", m.op("Less", x, m.constant(0.01 * k)), m.op("Neg", x), m.op("Sub", x, m.constant(2 if changed and k == 50 else 1)))
    return x


@hostile
def quotients_of_quotients(m, changed):
    x, y = m.input("x", "f32", [4]), m.input("y", "f32", [4])
    for k in range(60):
        x, y = m.op("Div", y, m.op("Add", x, y)), m.op("Add", m.op("Div", x, y), m.constant(2 if changed and k == 30 else 1))
    return x


@hostile
def tiled_2_30_times(m, changed):
    x = m.op("Tile", m.input("x", "f32", [4]), m.constant([2**30], "i64"))
    return m.op("ReduceMax", _scaled(m, x, changed), keepdims=0)


@hostile
def tiled_2_62_times(m, changed):
    x = m.op("Tile", m.input("x", "f32", [4]), m.constant([2**62], "i64"))
    return m.op("ReduceMax", _scaled(m, x, changed), keepdims=0)


@hostile
def gathered_by_10_8_indices(m, changed):
    indices = m.op("Expand", m.constant([3 if changed else 2], "i64"), m.constant([10**8], "i64"))
    return _sum(m, m.op("Relu", m.op("Gather", m.input("x", "f32", [5]), indices, axis=0)))


@hostile
def doubled_34_times(m, changed):
    x = m.input("x", "f32", [4])
    for _ in range(34):
        x = m.op("Concat", x, x, axis=0)
    return _sum(m, _scaled(m, m.op("Relu", x), changed))


@hostile
def constant_of_2_40(m, changed):
    c = m.op("ConstantOfShape", m.constant([2**40], "i64"))
    return _sum(m, m.op("Add", m.op("Mul", c, m.input("x", "f32", [1])), m.constant(1 if changed else 0)))


@hostile
def range_of_10_9(m, changed):
    r = m.op("Cast", m.op("Range", *[m.constant(v, "i64") for v in (0, 10**9, 1)]), to=1)
    return _sum(m, m.op("Mul", r, _scaled(m, m.input("x", "f32", [1]), changed)))


@hostile
def running_sum_of_2_27(m, changed):
    x = m.op("Expand", m.input("x", "f32", [1]), m.constant([2**27], "i64"))
    return m.op("ReduceMax", _scaled(m, m.op("CumSum", x, m.constant(0, "i64")), changed), keepdims=0)


@hostile
def softmax_of_2_27(m, changed):
    x = m.op("Mul", m.input("x", "f32", [2**13, 1]), m.input("y", "f32", [1, 2**14]))
    return m.op("ReduceMax", _scaled(m, m.op("Softmax", m.op("Reshape", x, m.constant([-1], "i64")), axis=0), changed), keepdims=0)


@hostile
def resized_to_2_32(m, changed):
    x = m.op("Resize", m.input("x", "f32", [1, 1, 4, 4]), "", m.constant([1, 1, 2**14, 2**14]), mode="linear")
    return m.op("ReduceMax", _scaled(m, x, changed), keepdims=0)


@hostile
def one_hot_of_2_33(m, changed):
    h = m.op("OneHot", m.constant(list(range(8)), "i64"), m.constant(2**30, "i64"), m.constant([0, 2 if changed else 1]))
    return _sum(m, m.op("Mul", h, m.input("x", "f32", [1])))


def save(folder, name, changed):
    model = Model()
    model.output(MODELS[name](model, changed), "f32")
    file = str(pathlib.Path(folder, "changed.onnx" if changed else "model.onnx"))
    onnx.save(model.build(), file)
    return file


def watched(command, folder, patience):
    """(exit code, or minus the signal; seconds; peak of resident bytes; killed here) of a process and what it waited for."""
    started = time.monotonic()
    with open(pathlib.Path(folder, "out"), "wb") as out, open(pathlib.Path(folder, "err"), "wb") as err:
        child = os.posix_spawnp(command[0], command, os.environ, setpgroup=0, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)])
    killed = False
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        seconds = time.monotonic() - started
        if pid:
            return os.waitstatus_to_exitcode(status), seconds, 1024 * usage.ru_maxrss, killed
        if seconds > patience and not killed:
            os.killpg(child, signal.SIGKILL)
            killed = True
        time.sleep(0.02)


def bytes_of(text):
    number, unit = re.fullmatch(r"([\d.]+)([KMG]?)B?", text).groups()
    return float(number) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit]


def attempt(name, changed, args):
    """(verdict, exit code, seconds, peak, what is wrong)"""
    with tempfile.TemporaryDirectory() as folder:
        first, second = save(folder, name, False), save(folder, name, changed)
        command = [args.mendel, "verify", first, second, "--json", "--time-limit", f"{args.limit}s", "--memory-limit", args.memory]
        here = os.getcwd()
        os.chdir(folder)  # a bundle of an internal error stays here
        code, seconds, peak, killed = watched(command, folder, 2 * args.limit + 3 * GRACE)
        os.chdir(here)
        try:
            said = json.loads(pathlib.Path(folder, "out").read_text())
            verdict = said.get("verdict") or "refused: " + said["error"]["message"].replace(folder + "/", "")
        except (json.JSONDecodeError, KeyError):
            verdict = "no verdict: " + pathlib.Path(folder, "err").read_text()[-120:].strip().replace("\n", " ")
    wrong = []
    if not 0 <= code <= 3:
        wrong.append("killed: it hangs" if killed else "exit code")
    if seconds > args.limit + GRACE:
        wrong.append("time")
    if peak > bytes_of(args.memory):
        wrong.append("memory")
    if verdict in (("equivalent", "equivalent-after-refit") if changed else ("different", "partial")):
        wrong.append("verdict")
    return verdict, code, seconds, peak, ", ".join(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mendel", required=True)
    parser.add_argument("--limit", type=int, default=20, help="seconds a comparison")
    parser.add_argument("--memory", default="6GB")
    parser.add_argument("--only", help="one model")
    args = parser.parse_args()
    args.mendel = str(pathlib.Path(args.mendel).resolve())
    failures = runs = 0
    print(f"{'model':34}{'against':10}{'exit':>5}{'seconds':>9}{'peak MB':>9}  verdict")
    for name in [args.only] if args.only else sorted(MODELS):
        for changed in (False, True):
            verdict, code, seconds, peak, wrong = attempt(name, changed, args)
            runs, failures = runs + 1, failures + bool(wrong)
            print(f"{name:34}{'changed' if changed else 'itself':10}{code:>5}{seconds:>9.1f}{peak / 2**20:>9.0f}  {verdict[:110]}"
                  f"{'  WRONG: ' + wrong if wrong else ''}", flush=True)
    print(f"{runs - failures} passed, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
