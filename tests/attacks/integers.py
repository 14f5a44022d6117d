"""Integers that doubles cannot distinguish, wrap-around, and reductions of nothing."""
import numpy

from tests.attacks.pair import DTYPES, Model, Pair, attack, decorate

LIMITS = {"i64": (-2**63, 2**63 - 1), "i32": (-2**31, 2**31 - 1), "i8": (-128, 127), "u8": (0, 255)}


def wrapped(value, dtype):
    low, high = LIMITS[dtype]
    return (value - low) % (high - low + 1) + low


def _large(rng):
    base = rng.choice([2**53, 2**54, 2**60, 2**62, -2**53, -2**61, 2**63 - 8, -2**63 + 8])
    return base + rng.randrange(-4, 4)


def _use(model, kind, x, c, keep):
    if kind == "Where":
        return model.op("Where", keep, c, x), "i64"
    dtype = "bool" if kind in ("Equal", "Less", "Greater", "LessOrEqual") else "i64"
    return model.op(kind, x, c), dtype


@attack
def large_integers(rng):
    """One operator with a constant, and with its neighbor."""
    n = rng.randrange(1, 5)
    values = [_large(rng) for _ in range(n)]
    equal = rng.random() < 0.3
    others = list(values)
    at = rng.randrange(n)
    others[at] += 0 if equal else rng.choice([-1, 1])
    kind = rng.choice(["Equal", "Less", "Greater", "LessOrEqual", "Add", "Sub", "Mul", "Where", "Max", "Min"])
    if kind in ("Max", "Min"):
        kind_opset = 17
    shape = [n]
    if rng.random() < 0.3 and len(set(values)) == 1:
        shape = []
    a, b = Model(), Model()
    for model, constant in ((a, values), (b, others)):
        x = decorate(rng, model, model.input("x", "i64", [n]), [n], "i64")
        keep = model.constant(numpy.arange(n) % 2 == at % 2, "bool")
        y, dtype = _use(model, kind, x, model.constant(constant, "i64"), keep)
        model.output(y, dtype)
    feeds = []
    for delta in (0, 1, -1):
        for base in (values, others):
            feeds.append({"x": numpy.array([v + delta for v in base], numpy.int64)})
    feeds.append({"x": numpy.ones([n], numpy.int64)})
    low = -2**63 if kind == "Max" else 2**63 - 1
    feeds.append({"x": numpy.full([n], low, numpy.int64)})
    return Pair(a.build(), b.build(), equal, feeds, f"{kind} with a large constant")


@attack
def ring_identities(rng):
    """x + 0, x 1, -(-x), merged and wrapped addends; and near misses."""
    dtype = rng.choice(["i64", "i32", "i8", "u8"])
    n = rng.randrange(1, 5)
    low, high = LIMITS[dtype]
    p, q = rng.randrange(low, high + 1), rng.randrange(low, high + 1)
    equal = rng.random() < 0.6
    miss = 0 if equal else rng.choice([1, -1, 2])
    kinds = ["merge", "neutral", "distribute"] if dtype != "i8" and dtype != "u8" else ["merge8"]
    kind = rng.choice(kinds + (["double"] if dtype in ("i64", "i32") else []))
    a, b = Model(), Model()
    x = a.input("x", dtype, [n])
    b.input("x", dtype, [n])
    c = lambda m, v: m.constant(wrapped(v, dtype), dtype)
    if kind in ("merge", "merge8"):
        ya = a.op("Add", a.op("Add", x, c(a, p)), c(a, q))
        yb = b.op("Add", "x", c(b, p + q + miss))
    elif kind == "neutral":
        ya = a.op("Add", a.op("Mul", x, c(a, 1)), c(a, 0))
        yb = b.op("Add", "x", c(b, miss)) if miss else b.op("Identity", "x")
    elif kind == "distribute":
        ya = a.op("Mul", a.op("Add", x, c(a, p)), c(a, q))
        yb = b.op("Add", b.op("Mul", "x", c(b, q)), c(b, p * q + miss))
    else:
        ya = a.op("Neg", a.op("Neg", x))
        yb = b.op("Add", "x", c(b, miss)) if miss else b.op("Mul", "x", c(b, 1))
    a.output(ya, dtype)
    b.output(yb, dtype)
    feeds = [{"x": numpy.array([rng.randrange(low, high + 1) for _ in range(n)]).astype(DTYPES[dtype][1])} for _ in range(3)]
    return Pair(a.build(), b.build(), equal, feeds, f"{kind} of {dtype}")


@attack
def empty_reductions(rng):
    """A reduction of nothing, folded, against a literal."""
    dtype = rng.choice(["i64", "i32", "f32", "f64"])
    limits = LIMITS.get(dtype, (-numpy.inf, numpy.inf))
    neutral = {"ReduceMax": limits[0], "ReduceMin": limits[1], "ReduceSum": 0, "ReduceProd": 1}
    kind = rng.choice(sorted(neutral))
    n = rng.randrange(1, 4)
    equal = rng.random() < 0.4
    value = neutral[kind]
    if not equal:
        value = rng.choice([v for v in (0, 1, -1, limits[0], limits[1]) if v != value])
    model_a, model_b = Model(opset=18), Model(opset=18)
    x = model_a.input("x", dtype, [n])
    empty = model_a.constant(numpy.zeros([n, 0]), dtype)
    if kind == "ReduceSum":
        reduced = model_a.op(kind, empty, model_a.constant([1], "i64"), keepdims=0)
    else:
        reduced = model_a.op(kind, empty, model_a.constant([1], "i64"), keepdims=0)
    use = rng.choice(["Add", "Min", "Max"])
    model_a.output(model_a.op(use, x, reduced), dtype)
    model_b.input("x", dtype, [n])
    model_b.output(model_b.op(use, "x", model_b.constant([value] * n, dtype)), dtype)
    feeds = [{"x": numpy.array([v] * n).astype(DTYPES[dtype][1])} for v in (0, 5, -5)]
    return Pair(model_a.build(), model_b.build(), equal, feeds, f"{kind} of no {dtype}")
