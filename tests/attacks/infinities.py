"""Infinities in constants: masks of -inf, paddings. What is finite on one side is NaN on the other."""
import numpy

from tests.attacks.pair import Model, Pair, attack, decorate, floats


def _mask(rng, n, m):
    """No row is masked whole."""
    mask = numpy.zeros((n, m))
    if rng.random() < 0.5:
        mask[numpy.triu_indices(n, 1, m)] = -numpy.inf
    else:
        for i in range(n):
            for j in range(1, m):
                mask[i, j] = -numpy.inf if rng.random() < 0.4 else 0
        mask[0, m - 1] = -numpy.inf
    return mask


def _sum(model, axis, x):
    return model.op("ReduceSum", x, model.constant([axis], "i64"), keepdims=1)


_EQUAL_SHIFTS = {
    "max": lambda m, t, axis: m.op("Sub", t, m.op("ReduceMax", t, axes=[axis], keepdims=1)),
    "literal": lambda m, t, axis: m.op("Add", t, m.constant(2.5)),
    "itself": lambda m, t, axis: t,
}
_WRONG_TERMS = {
    "t - mean": lambda m, t, axis: m.op("Sub", t, m.op("ReduceMean", t, axes=[axis], keepdims=1)),
    "t - sum": lambda m, t, axis: m.op("Sub", t, _sum(m, axis, t)),
    "t - t": lambda m, t, axis: m.op("Add", t, m.op("Sub", t, t)),
    "0 t": lambda m, t, axis: m.op("Add", t, m.op("Mul", t, m.constant(0))),
    "2t - t": lambda m, t, axis: m.op("Sub", m.op("Mul", t, m.constant(2)), t),
    "t + 0 sum": lambda m, t, axis: m.op("Add", t, m.op("Mul", _sum(m, axis, t), m.constant(0))),
    "t + relu(-t) - relu(-t)":
        lambda m, t, axis: m.op("Sub", m.op("Add", t, m.op("Relu", m.op("Neg", t))), m.op("Relu", m.op("Neg", t))),
    "t / 2 + t / 2 - 0 t":
        lambda m, t, axis: m.op("Sub", m.op("Add", m.op("Div", t, m.constant(2)), m.op("Div", t, m.constant(2))),
                                m.op("Mul", t, m.constant(0))),
}
_WRONG_RESULTS = {
    "exp(2t) / exp(t)": lambda m, t: m.op("Div", m.op("Exp", m.op("Mul", t, m.constant(2))), m.op("Exp", t)),
    "relu(t) as t + relu(-t)": lambda m, t: m.op("Add", t, m.op("Relu", m.op("Neg", t))),
    "sigmoid by its square": lambda m, t: m.op("Div", m.op("Mul", m.op("Sigmoid", t), m.op("Sigmoid", t)), m.op("Sigmoid", t)),
}
_RIGHT_RESULTS = {
    "exp(2t) / exp(t)": lambda m, t: m.op("Exp", t),
    "relu(t) as t + relu(-t)": lambda m, t: m.op("Relu", t),
    "sigmoid by its square": lambda m, t: m.op("Sigmoid", t),
}


def _masked(rng, model, shape, mask, by_where):
    x = model.input("x", "f32", shape)
    x = decorate(rng, model, x, shape)
    if by_where:
        keep = model.constant(mask == 0, "bool")
        return model.op("Where", keep, x, model.constant(-numpy.inf))
    if rng.random() < 0.3:
        half = numpy.where(numpy.arange(mask.shape[1]) % 2 == 0, mask, 0)
        other = numpy.where(numpy.arange(mask.shape[1]) % 2 == 0, 0, mask)
        return model.op("Add", model.op("Add", x, model.constant(half)), model.constant(other))
    return model.op("Add", x, model.constant(mask))


@attack
def masks(rng):
    n, m = rng.randrange(2, 6), rng.randrange(2, 7)
    shape = [n, m] if rng.random() < 0.5 else [rng.randrange(1, 4), n, m]
    axis = len(shape) - 1
    mask = _mask(rng, n, m)
    equal = rng.random() < 0.4
    pool = _EQUAL_SHIFTS if equal else _WRONG_TERMS
    what = rng.choice(sorted(pool))
    by_where = rng.random() < 0.3
    a, b = Model(), Model()
    for model, wrong in ((a, False), (b, True)):
        t = _masked(rng, model, shape, mask, by_where)
        if wrong:
            t = pool[what](model, t, axis)
        y = model.op("Softmax", t, axis=axis)
        model.output(decorate(rng, model, y, shape), "f32")
    return Pair(a.build(), b.build(), equal, [{"x": floats(rng, shape)}], f"softmax of {what}")


@attack
def masked_functions(rng):
    n, m = rng.randrange(2, 6), rng.randrange(2, 7)
    mask = _mask(rng, n, m)
    what = rng.choice(sorted(_WRONG_RESULTS))
    equal = rng.random() < 0.2
    a, b = Model(), Model()
    for model, wrong in ((a, False), (b, True)):
        t = _masked(rng, model, [n, m], mask, False)
        y = (_WRONG_RESULTS if wrong and not equal else _RIGHT_RESULTS)[what](model, t)
        if wrong and equal:
            y = model.op("Mul", y, model.constant(1))
        model.output(decorate(rng, model, y, [n, m]), "f32")
    return Pair(a.build(), b.build(), equal, [{"x": floats(rng, [n, m], 0.1, 2)}], what)


@attack
def padded_pools(rng):
    h = rng.randrange(3, 7)
    shape = [1, rng.randrange(1, 3), h, h]
    a, b = Model(), Model()
    y = a.op("MaxPool", a.input("x", "f32", shape), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    a.output(y, "f32")
    x = b.input("x", "f32", shape)
    padded = b.op("Pad", x, b.constant([0, 0, 1, 1, 0, 0, 1, 1], "i64"), b.constant(-numpy.inf))
    y = b.op("MaxPool", padded, kernel_shape=[3, 3])
    equal = rng.random() < 0.4
    if not equal:
        kind = rng.randrange(2)
        spread = b.op("Sub", padded, padded) if kind == 0 else b.op("Mul", padded, b.constant(0))
        y = b.op("Add", y, b.op("MaxPool", spread, kernel_shape=[3, 3]))
    b.output(y, "f32")
    return Pair(a.build(), b.build(), equal, [{"x": floats(rng, shape)}], "max pool padded by -inf")


# Values that are NaN for every input, the number that their formula is, and that number for x = 0.5.
_NANS = {
    "m - m": (lambda m, s, x: m.op("Sub", s, s), lambda m, x: m.op("Sub", x, x), 0),
    "x + m - m": (lambda m, s, x: m.op("Sub", s, m.constant(-numpy.inf)), lambda m, x: m.op("Identity", x), 0.5),
    "0 m": (lambda m, s, x: m.op("Mul", m.op("Mul", x, m.constant(0)), m.constant(numpy.inf)), lambda m, x: m.op("Mul", x, m.constant(0)), 0),
    "m / m": (lambda m, s, x: m.op("Div", s, s), lambda m, x: m.op("Div", m.op("Exp", x), m.op("Exp", x)), 1),
}
# Functions that give a number for a NaN, and the numbers for which they give another one.
_ABSORBERS = {
    "Less": (lambda m, v: m.op("Less", v, m.constant(2)), (0, 0.5, 1)),
    "GreaterOrEqual": (lambda m, v: m.op("GreaterOrEqual", v, m.constant(-2)), (0, 0.5, 1)),
    "Equal": (lambda m, v: m.op("Equal", v, v), (0, 0.5, 1)),
    "IsNaN": (lambda m, v: m.op("IsNaN", v), (0, 0.5, 1)),
    "Cast": (lambda m, v: m.op("Cast", v, to=9), (0,)),
    "ThresholdedRelu": (lambda m, v: m.op("ThresholdedRelu", v, alpha=0.25), (0.5, 1)),
}


@attack
def absorbed_nan(rng):
    """A NaN that a function does not pass on, against the number that its formula is."""
    n = rng.randrange(1, 5)
    what = rng.choice(sorted(_NANS))
    nan, number, value = _NANS[what]
    name = rng.choice(sorted(k for k, (_, seen) in _ABSORBERS.items() if value in seen))
    equal = rng.random() < 0.3
    mask = numpy.full([n], -numpy.inf, numpy.float32)
    repairs = name == "IsNaN" and rng.random() < 0.5
    a, b = Model(), Model()
    for model, is_nan in ((a, True), (b, equal)):
        x, w = model.input("x", "f32", [n]), model.input("w", "f32", [n])
        s = model.op("Add", x, model.constant(mask))
        v = nan(model, s, x) if is_nan else number(model, x)
        y = _ABSORBERS[name][0](model, v)
        if repairs:
            y = model.op("Where", y, w, v)
        elif name != "ThresholdedRelu":
            y = model.op("Cast", y, to=1)
        model.output(model.op("Add", y, decorate(rng, model, w, [n]) if equal else w), "f32")
    feeds = [{"x": numpy.full([n], 0.5, numpy.float32), "w": numpy.full([n], 3, numpy.float32)}]
    return Pair(a.build(), b.build(), equal, feeds, f"{name} of {what}" + (", repaired" if repairs else ""))
