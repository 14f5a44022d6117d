"""The node tests of the onnx package as attacks on `mendel verify`: masked, mutated, as function bodies, and of another opset.

usage: python3 -m tests.attacks.node_tests --mendel build/release/mendel [--only SUBSTRING] [--kind KIND] [--keep DIR] [--limit 10]

masked: against itself with one element of one float output multiplied by 0; equivalent would be wrong.
mutated: against itself with another attribute, or with two inputs exchanged, where the reference evaluator sees the difference;
equivalent would be wrong.
body: an operator against its function body, the package's own twin.
converted: against what onnx.version_converter makes of it for opset 21.
But for the conversion, a test of a later opset, which is not imported, is lowered to 21 where that is the same model.
The last two are equal unless the reference evaluator sees them differ, on inputs like the test's own or on Mendel's witness; the
verdicts different and partial would be wrong. Inputs that an import needs as constants are bound to the test's own values.
Exit code 1: some verdict was wrong. Needs onnx (scripts/soak).
"""
import argparse
import collections
import json
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
import onnx.reference
import onnx.version_converter
from onnx import helper, numpy_helper

OPSET = 21
EQUAL = ("equivalent", "equivalent-after-refit")
DIFFERENT = ("different", "partial")
_FLOATS = {"float64": 1e-4, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
_COLUMNS = [*EQUAL, "partial", "different", "unproven", "refused", "skipped", "WRONG"]


def evaluate(model, feeds):
    """The outputs of each feed, or None where the reference evaluator cannot."""
    try:
        evaluator = onnx.reference.ReferenceEvaluator(model)
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [evaluator.run(None, feed) for feed in feeds]
    except Exception:  # what it has no implementation for, or inputs that it cannot take
        return None


def runtime_disputes(a, b, feed):
    """True where ONNX Runtime, if it is installed and takes both, sees no difference or refuses to run one: the reference evaluator errs in corners."""
    try:
        import onnxruntime
        onnxruntime.set_default_logger_severity(4)
        sessions = [onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]) for m in (a, b)]
    except Exception:  # not installed, or it does not take one of them
        return False
    try:
        runs = [session.run(None, feed) for session in sessions]
    except Exception:
        return True
    return all(same(p, q) for p, q in zip(*runs))


def same(x, y):
    if not isinstance(x, numpy.ndarray) or not isinstance(y, numpy.ndarray):
        return isinstance(x, type(y)) and str(x) == str(y)
    if x.shape != y.shape:
        return False
    tolerance = _FLOATS.get(y.dtype.name)
    if tolerance is None:
        return bool((x == y).all())
    x, y = x.astype(numpy.float64), y.astype(numpy.float64)
    with numpy.errstate(all="ignore"):
        return numpy.allclose(x, y, rtol=tolerance, atol=tolerance * max(1e-3, numpy.abs(y[numpy.isfinite(y)]).max(initial=0)), equal_nan=True)


def like(rng, feed, bound, k):
    """Other values in the places of a feed's floats; the domain stays what it is."""
    made = {}
    for name, value in feed.items():
        if name in bound or not isinstance(value, numpy.ndarray) or value.dtype.name not in _FLOATS:
            made[name] = value
        elif k == 0:
            made[name] = value
        else:
            shuffled = rng.permutation(value.astype(numpy.float64).reshape(-1)).reshape(value.shape)
            made[name] = (shuffled * rng.uniform(0.9, 1.1, value.shape) if k > 2 else shuffled).astype(value.dtype)
    return made


def feed_of(case):
    """The first data set by input name, or None (sequences, optionals)."""
    names = [i.name for i in case.model.graph.input]
    values = case.data_sets[0][0]
    if len(names) != len(values) or not all(isinstance(v, (numpy.ndarray, numpy.generic)) for v in values):
        return None
    return {name: numpy.asarray(v) for name, v in zip(names, values)}


def bindings(feed):
    """What to bind, in the order of attempts: nothing, small integers behind the first input, all behind the first."""
    rest = list(feed)[1:]
    integers = [name for name in rest if feed[name].dtype.name in ("int64", "int32", "bool") and feed[name].size <= 64]
    seen = []
    for names in ([], integers, rest):
        if names not in seen and all(feed[name].dtype.name in numpy.sctypeDict for name in names):
            seen.append(names)
    return seen


def masked(rng, original, feed):
    """The model with one element of an output masked, and why not."""
    version = opset_of(original) or 13
    if version < 7:
        return None, "opset below 7"
    runs = evaluate(original, [like(rng, feed, (), k) for k in range(5)])
    if runs is None:
        return None, "not evaluated"
    for at, output in enumerate(original.graph.output):
        values = [run[at] for run in runs]
        if not all(isinstance(v, numpy.ndarray) and v.dtype.name in _FLOATS and v.shape == values[0].shape for v in values):
            continue
        visible = numpy.any([numpy.isfinite(v.astype(float)) & (v.astype(float) != 0) for v in values], axis=0)
        if not visible.any():
            continue
        places = numpy.argwhere(visible)
        mask = numpy.ones(values[0].shape, values[0].dtype)
        mask[tuple(places[rng.integers(len(places))])] = 0
        model = onnx.ModelProto()
        model.CopyFrom(original)
        if opset_of(model) is None:
            model.opset_import.append(helper.make_opsetid("", version))
        for node in model.graph.node:
            node.output[:] = [name + "_unmasked" if name == output.name else name for name in node.output]
        model.graph.node.append(helper.make_node("Mul", [output.name + "_unmasked", "the_mask"], [output.name]))
        model.graph.initializer.append(numpy_helper.from_array(mask, "the_mask"))
        return model, ""
    return None, "no float output that is not 0"


# Texts of attributes that the package's own tests do not all use.
_TEXTS = {"approximate": ["none", "tanh"], "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], "mode": ["constant", "reflect", "edge", "wrap"],
          "reduction": ["none", "add", "mul", "max", "min"], "direction": ["forward", "reverse"], "padding_mode": ["zeros", "border", "reflection"],
          "coordinate_transformation_mode": ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"],
          "nearest_mode": ["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"]}


def other_values(name, kind, value):
    """Values of an attribute beside `value`, which is None where the schema has no default."""
    if kind == onnx.defs.OpSchema.AttrType.INT:
        value = value or 0
        return [v for v in (1 - value, value + 1, value - 1) if v != value]
    if kind == onnx.defs.OpSchema.AttrType.FLOAT:
        value = value or 0.0
        return [value * 1.5 + 0.25, -value - 1]
    if kind == onnx.defs.OpSchema.AttrType.STRING:
        value = value.decode() if isinstance(value, bytes) else value
        return [text for text in _TEXTS.get(name, []) if text != value]
    if kind == onnx.defs.OpSchema.AttrType.INTS and value:
        changed = [[*value[:k], v + d, *value[k + 1:]] for k, v in enumerate(value) for d in (1, -1)]
        return [*changed, list(reversed(value))]
    return []


def mutants(original, feed):
    """Models with one other attribute, or with exchanged inputs, whose outputs differ from the original's."""
    node = original.graph.node[0]
    try:
        schema = onnx.defs.get_schema(node.op_type, opset_of(original) or 1, node.domain)
    except onnx.defs.SchemaError:
        return
    if any(v.dtype.kind == "f" and not numpy.isfinite(v).all() for v in map(numpy.asarray, feed.values())):
        return  # inputs are finite by contract, so that IsInf with another attribute is the same function
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    made = []
    for name, attribute in sorted(schema.attributes.items()):
        default = helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        for value in other_values(name, attribute.type, given.get(name, default)):
            model = onnx.ModelProto()
            model.CopyFrom(original)
            kept = [a for a in node.attribute if a.name != name]
            del model.graph.node[0].attribute[:]
            model.graph.node[0].attribute.extend([*kept, helper.make_attribute(name, value)])
            made.append((f"{name}={value}", model))
    for k in range(len(node.input) - 1):
        model = onnx.ModelProto()
        model.CopyFrom(original)
        exchanged = model.graph.node[0].input
        exchanged[k], exchanged[k + 1] = exchanged[k + 1], exchanged[k]
        made.append((f"inputs {k} and {k + 1}", model))
    truth = evaluate(original, [feed])
    for what, model in made:
        if not checked(model):
            continue
        run = evaluate(model, [feed])
        if truth is None or run is None or len(run[0]) != len(truth[0]):
            continue
        arrays = list(zip(truth[0], run[0]))
        if all(isinstance(v, numpy.ndarray) for p in arrays for v in p) and all(x.shape == y.shape and x.dtype == y.dtype for x, y in arrays) \
                and not all(same(x, y) and same(y, x) for x, y in arrays) and not runtime_disputes(original, model, feed):
            yield what, model


def checked(model):
    """True where the package's checker accepts the model. It runs in a child: some attributes make it abort."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            onnx.checker.check_model(model, full_check=True)
            os._exit(0)
        except Exception:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def opset_of(model):
    return next((o.version for o in model.opset_import if o.domain == ""), None)


def converted(model):
    """The model of opset 21, and why not."""
    if opset_of(model) in (None, OPSET):
        return None, "is of that opset" if opset_of(model) else "of another domain"
    try:
        other = onnx.version_converter.convert_version(model, OPSET)
        onnx.checker.check_model(other, full_check=True)
        return other, ""
    except Exception:
        return None, "not convertible"


def lowered(model, feed):
    """The same model of an opset that is imported, where there is one; otherwise the model."""
    if (opset_of(model) or 0) <= OPSET:
        return model
    stamped = onnx.ModelProto()
    stamped.CopyFrom(model)
    for entry in stamped.opset_import:
        entry.version = OPSET if entry.domain == "" else entry.version
    for other in (converted(model)[0], stamped):
        if other is None:
            continue
        other.ir_version = min(other.ir_version, 10)
        try:
            onnx.checker.check_model(other, full_check=True)
        except Exception:
            continue
        runs = evaluate(model, [feed]), evaluate(other, [feed])
        if None not in runs and all(same(p, q) for p, q in zip(runs[0][0], runs[1][0])):
            return other
    return model


def verify(args, folder, files, feed):
    """(verdict or refusal, the report, exit code, bound names): the first attempt of bindings that imports."""
    first = None
    for names in bindings(feed):
        options = []
        for name in names:
            file = pathlib.Path(folder, f"bound_{len(options)}.npy")
            numpy.save(file, feed[name])
            options += ["--bind", f"{name}={file}"]
        run = subprocess.run([args.mendel, "verify", *files, "--json", "--witness", str(pathlib.Path(folder, "witness")),
                              "--time-limit", f"{args.limit}s", *options], capture_output=True, text=True, cwd=folder, timeout=60 + 2 * args.limit)
        try:
            said = json.loads(run.stdout)
        except json.JSONDecodeError:
            said = {"error": {"message": f"exit {run.returncode}: {run.stderr[-200:]}"}}
        answer = said.get("verdict"), said, run.returncode, names
        if answer[0] or not 0 <= run.returncode <= 3:
            return answer
        first = first or answer
    return first


def at_witness(feed, report, a, b):
    """Do the models differ where Mendel says so? None: the reference evaluator cannot decide."""
    files = (report.get("witness") or {}).get("inputs")
    if not files:
        return None
    point = dict(feed)
    for name, file in files.items():
        if name in point:
            point[name] = numpy.load(file).astype(point[name].dtype).reshape(point[name].shape)
    x, y = evaluate(a, [point]), evaluate(b, [point])
    return None if x is None or y is None else not all(same(p, q) for p, q in zip(x[0], y[0]))


def classify(args, kind, name, feed, model, other, rng):
    """(column, why, verdict)"""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(pathlib.Path(folder, f)) for f in ("a.onnx", "b.onnx")]
        onnx.save(model, files[0])
        onnx.save(other, files[1])
        verdict, report, code, bound = verify(args, folder, files, feed)
        if not 0 <= code <= 3:
            return "WRONG", f"exit {code}", "crash"
        if verdict is None:
            message = re.sub(r"'[^']*'|[^ ]*\.onnx:|[\d.]+", "_", report["error"]["message"])
            return "refused", message.replace("_ node _", "").strip()[:110], "refused"
        if kind in ("masked", "mutated"):
            column = "WRONG" if verdict in EQUAL else verdict
        elif verdict in DIFFERENT:
            feeds = [like(rng, feed, bound, k) for k in range(5)]
            x, y = evaluate(model, feeds), evaluate(other, feeds)
            if x is None or y is None:
                return "skipped", "different, but not evaluated", verdict
            equal = all(same(p, q) for u, v in zip(x, y) for p, q in zip(u, v)) and not at_witness(feed, report, model, other)
            column = "WRONG" if equal else verdict
        else:
            column = verdict
        why = report.get("reason", "")
        if column == "unproven":
            why = re.sub(r"'[^']*'|\[[^\]]*\]|[\d.e-]+\d|\d+", "_", why)[:160]
        if args.keep and column in ("WRONG", "unproven"):
            for side, saved in zip("ab", (model, other)):
                onnx.save(saved, str(pathlib.Path(args.keep, f"{kind}-{name}-{side}.onnx")))
        return column, why, verdict


def pairs(cases, only, kind, rng):
    """(kind, name, its inputs, A, B, why there is none); `kind`: None, or the only one that is wanted"""
    for name, case in sorted(cases.items()):
        if only not in name or len(case.model.graph.node) != 1 or "_expanded" in name:
            continue
        feed = feed_of(case)
        runs = evaluate(case.model, [feed, feed]) if feed else None
        why = "sequences or optionals" if feed is None else ""
        if runs and not all(same(p, q) for p, q in zip(*runs)):
            why = "random"
        if why:
            yield "masked", name, feed, case.model, None, why
            continue
        plain = lowered(case.model, feed)
        yield "masked", name, feed, plain, *masked(rng, plain, feed)
        for what, mutant in mutants(plain, feed) if kind in (None, "mutated") else ():
            yield "mutated", f"{name} {what}", feed, plain, mutant, ""
        for twin in sorted(cases):
            if re.fullmatch(re.escape(name) + r"_expanded(_ver\d+)?", twin):
                yield "body", twin, feed, plain, lowered(cases[twin].model, feed), ""
        yield "converted", name, feed, case.model, *converted(case.model)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mendel", required=True)
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--kind", choices=["masked", "mutated", "body", "converted"], help="default: all")
    parser.add_argument("--keep", help="folder for the models of wrong and unproven verdicts")
    parser.add_argument("--limit", type=int, default=10, help="seconds a pair")
    args = parser.parse_args()
    args.mendel = str(pathlib.Path(args.mendel).resolve())
    if args.keep:
        pathlib.Path(args.keep).mkdir(parents=True, exist_ok=True)
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = {case.name: case for case in onnx.backend.test.loader.load_model_tests(kind="node")}
    table = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(lambda: collections.defaultdict(list))
    wrong = []
    rng = numpy.random.default_rng(1)
    for kind, name, feed, model, other, why in pairs(cases, args.only, args.kind, rng):
        if args.kind not in (None, kind):
            continue
        column, why, verdict = classify(args, kind, name, feed, model, other, rng) if other is not None else ("skipped", why, "")
        table[kind][column] += 1
        if column == "WRONG":
            wrong.append(f"WRONG {kind} {name}: {verdict} {why[:100]}")
        elif column in ("refused", "skipped", "unproven"):
            reasons[column][kind, why].append(name)
    print(f"{'kind':11}" + "".join(f"{column:>{len(column) + 2}}" for column in _COLUMNS))
    for kind, row in table.items():
        print(f"{kind:11}" + "".join(f"{row[column]:>{len(column) + 2}}" for column in _COLUMNS))
    for column, rows in reasons.items():
        for (kind, why), names in sorted(rows.items(), key=lambda item: -len(item[1]))[:25]:
            print(f"{column} {len(names):4} {kind}: {why} [{', '.join(names[:3])}{', ...' if len(names) > 3 else ''}]")
    print("\n".join(wrong))
    print(f"{sum(sum(row.values()) for row in table.values()) - len(wrong)} passed, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
