"""Symbolic dimensions: programs that are equal for one size only."""
import numpy

from tests.attacks.pair import Model, Pair, attack, floats


def _sum(m, x):
    return m.op("ReduceSum", x, m.constant([0], "i64"), keepdims=1)


_PROGRAMS = {
    "x - mean against x - x": (lambda m, x: m.op("Sub", x, m.op("ReduceMean", x, axes=[0], keepdims=1)),
                               lambda m, x: m.op("Sub", x, x)),
    "sum against x": (lambda m, x: m.op("Add", m.op("Sub", x, x), _sum(m, x)), lambda m, x: x),
    "max against x": (lambda m, x: m.op("Add", m.op("Sub", x, x), m.op("ReduceMax", x, axes=[0], keepdims=1)), lambda m, x: x),
    "softmax against x / x": (lambda m, x: m.op("Softmax", x, axis=0), lambda m, x: m.op("Add", m.op("Sub", x, x), m.constant(1))),
    "cumsum against x": (lambda m, x: m.op("CumSum", x, m.constant(0, "i64")), lambda m, x: x),
    "sum against 3 mean": (lambda m, x: _sum(m, x),
                           lambda m, x: m.op("Mul", m.op("ReduceMean", x, axes=[0], keepdims=1), m.constant(3))),
}
_EQUAL = {
    "x + x": (lambda m, x: m.op("Add", x, x), lambda m, x: m.op("Mul", x, m.constant(2))),
    "-sum": (lambda m, x: m.op("Neg", _sum(m, x)), lambda m, x: _sum(m, m.op("Neg", x))),
    "relu": (lambda m, x: m.op("Relu", x), lambda m, x: m.op("Identity", m.op("Relu", x))),
}


@attack
def symbolic_sizes(rng):
    equal = rng.random() < 0.3
    what = rng.choice(sorted(_EQUAL if equal else _PROGRAMS))
    f, g = (_EQUAL if equal else _PROGRAMS)[what]
    rest = [rng.randrange(1, 4) for _ in range(rng.randrange(0, 2))]
    a, b = Model(), Model()
    for model, make in ((a, f), (b, g)):
        x = model.input("x", "f32", ["N", *rest])
        model.output(make(model, x), "f32")
    feeds = [{"x": floats(rng, [n, *rest])} for n in (2, 3, 5)]
    return Pair(a.build(), b.build(), equal, feeds, what)


def _shape(m, x):
    return m.op("Shape", x)


def _float(m, value):
    return m.op("Cast", value, to=1)


def _rows(m, x):
    count = m.op("Squeeze", _shape(m, x), m.constant([0], "i64"))
    return m.op("Range", m.constant(0, "i64"), count, m.constant(1, "i64"))


def _total(m, x):
    return m.op("ReduceSum", x, keepdims=1)


def _cut(m, x, start, end):
    return m.op("Slice", x, m.constant([start], "i64"), m.constant([end], "i64"))


def _chosen(m, x, condition):
    return m.op("Where", condition, x, m.op("Neg", x))


def _table(m, x, values):
    return m.op("Add", x, m.op("Gather", m.constant(values), _rows(m, x)))


# Programs of x[N] and of a number k that are equal for N up to k only, or up to k and from some larger one on.
_TURNS = {
    "N > k": (lambda m, x, k: _chosen(m, x, m.op("Greater", _shape(m, x), m.constant(k, "i64"))), lambda m, x, k: m.op("Neg", x)),
    "N^2 > k^2": (lambda m, x, k: _chosen(m, x, m.op("Greater", m.op("Mul", _shape(m, x), _shape(m, x)), m.constant(k * k, "i64"))),
                  lambda m, x, k: m.op("Neg", x)),
    "N == k + 1": (lambda m, x, k: _chosen(m, x, m.op("Equal", _shape(m, x), m.constant(k + 1, "i64"))), lambda m, x, k: m.op("Neg", x)),
    "min(N, k)": (lambda m, x, k: m.op("Mul", x, _float(m, m.op("Min", _shape(m, x), m.constant(k, "i64")))),
                  lambda m, x, k: m.op("Mul", x, _float(m, _shape(m, x)))),
    "min(row, k - 1)": (lambda m, x, k: m.op("Mul", x, _float(m, m.op("Min", _rows(m, x), m.constant(k - 1, "i64")))),
                        lambda m, x, k: m.op("Mul", x, _float(m, _rows(m, x)))),
    "N / (k + 1)": (lambda m, x, k: m.op("Mul", x, _float(m, m.op("Div", _shape(m, x), m.constant(k + 1, "i64")))),
                    lambda m, x, k: m.op("Sub", x, x)),
    "x[:k]": (lambda m, x, k: _total(m, _cut(m, x, 0, k)), lambda m, x, k: _total(m, x)),
    "x[-k:]": (lambda m, x, k: _total(m, _cut(m, x, -k, 2**62)), lambda m, x, k: _total(m, x)),
    "row < k": (lambda m, x, k: _chosen(m, x, m.op("Less", _rows(m, x), m.constant(k, "i64"))), lambda m, x, k: m.op("Identity", x)),
    "a table's row k": (lambda m, x, k: _table(m, x, numpy.arange(k + 9) / 8),
                        lambda m, x, k: _table(m, x, numpy.minimum(numpy.arange(k + 9), k - 1) / 8)),
    "a quotient by N - k - 1": (lambda m, x, k: m.op("Div", m.op("Mul", x, _float(m, m.op("Sub", _shape(m, x), m.constant(k + 1, "i64")))),
                                                     _float(m, m.op("Sub", _shape(m, x), m.constant(k + 1, "i64")))),
                                lambda m, x, k: m.op("Identity", x)),
}
_NO_TURNS = {
    "sum of two parts": (lambda m, x, k: _total(m, x), lambda m, x, k: m.op("Add", _total(m, _cut(m, x, 0, k)), _total(m, _cut(m, x, k, 2**62)))),
    "both cut": (lambda m, x, k: _total(m, _cut(m, x, 0, k)), lambda m, x, k: m.op("Neg", _total(m, m.op("Neg", _cut(m, x, 0, k))))),
    "one table": (lambda m, x, k: _table(m, x, numpy.arange(k + 9) / 8),
                  lambda m, x, k: m.op("Add", m.op("Gather", m.constant(numpy.arange(k + 9) / 8), _rows(m, x)), x)),
}


@attack
def turning_sizes(rng):
    """Programs that become others from a larger size on."""
    equal = rng.random() < 0.3
    what = rng.choice(sorted(_NO_TURNS if equal else _TURNS))
    f, g = (_NO_TURNS if equal else _TURNS)[what]
    k = rng.choice([6, 70, 130, rng.randrange(200, 600), rng.randrange(600, 3000)])
    a, b = Model(), Model()
    for model, make in ((a, f), (b, g)):
        x = model.input("x", "f32", ["N"])
        model.output(make(model, x, k), "f32")
    feeds = [{"x": floats(rng, [n])} for n in (k + 1, 2)]
    return Pair(a.build(), b.build(), equal, feeds, what, tolerance=1e-4 if not equal else 1e-2)


def _size(m, x):
    return _float(m, _shape(m, x))


def _ones(m, x):
    return m.op("Expand", m.constant(1), _shape(m, x))


def _counts(m, x):
    return m.op("CumSum", _ones(m, x), m.constant(0, "i64"))


def _plus_beyond(m, x, number, k):
    """x + relu(number - k)"""
    return m.op("Add", x, m.op("Relu", m.op("Sub", number, m.constant(k))))


def _hard(m, x, k):
    pair = m.op("Concat", m.constant([k + 0.5]), _size(m, x), axis=0)
    return m.op("Add", x, m.op("Gather", m.op("Hardmax", pair, axis=0), m.constant([1], "i64")))


def _scaled(m, x, share):
    return m.op("Mul", x, m.op("Add", m.constant(1), m.op("Mul", _size(m, x), m.constant(share))))


# Programs of x[N] and of a number k that are x for N up to k only: a number computed of N passes a kink there.
_KINKS = {
    "relu of N": lambda m, x, k: _plus_beyond(m, x, _size(m, x), k),
    "relu of a count": lambda m, x, k: _plus_beyond(m, x, m.op("ReduceSum", _ones(m, x), keepdims=1), k),
    "relu of counts": lambda m, x, k: _plus_beyond(m, x, _counts(m, x), k),
    "relu of rows": lambda m, x, k: _plus_beyond(m, x, _float(m, _rows(m, x)), k - 1),
    "relu of sqrt": lambda m, x, k: _plus_beyond(m, x, m.op("Mul", m.op("Sqrt", _size(m, x)), m.op("Sqrt", _size(m, x))), k + 0.5),
    "thresholded": lambda m, x, k: m.op("Add", x, m.op("ThresholdedRelu", _size(m, x), alpha=float(k))),
    "thresholded counts": lambda m, x, k: m.op("Add", x, m.op("ThresholdedRelu", _counts(m, x), alpha=float(k))),
    "hardsigmoid": lambda m, x, k: m.op("Add", x, m.op("HardSigmoid", m.op("Sub", _size(m, x), m.constant(k)), alpha=0.25, beta=0.0)),
    "hardmax": _hard,
    "counts > k": lambda m, x, k: _chosen(m, m.op("Neg", x), m.op("Greater", _counts(m, x), m.constant(k))),
    "rows > k": lambda m, x, k: _chosen(m, m.op("Neg", x), m.op("Greater", _float(m, _rows(m, x)), m.constant(k - 0.5))),
    "sign": lambda m, x, k: m.op("Mul", x, m.op("Sign", m.op("Sub", m.constant(k + 0.5), _size(m, x)))),
    "clip": lambda m, x, k: m.op("Add", x, m.op("Sub", m.op("Clip", _size(m, x), m.constant(float(k))), m.constant(k))),
}
# The same, whatever N is.
_NO_KINKS = {
    "relu of N + k": lambda m, x, k: m.op("Sub", m.op("Sub", _plus_beyond(m, x, _size(m, x), -k), m.constant(k)), _size(m, x)),
    "relu of -N": lambda m, x, k: _plus_beyond(m, x, m.op("Neg", _size(m, x)), k),
    "twice negated": lambda m, x, k: m.op("Neg", m.op("Neg", x)),
    "counts > -k": lambda m, x, k: _chosen(m, x, m.op("Greater", _counts(m, x), m.constant(-k))),
}


@attack
def kinks_of_sizes(rng):
    """A number computed of a size passes a kink, or what a float distinguishes, at a larger size only."""
    equal = rng.random() < 0.3
    what = rng.choice(sorted(_NO_KINKS if equal else [*_KINKS, "share"]))
    k = rng.choice([70, 900, rng.randrange(200, 2000), rng.randrange(2000, 16000), rng.randrange(16000, 60000)])
    sizes = (k + 40, 2)
    f = (_NO_KINKS if equal else _KINKS).get(what)
    if what == "share":
        share = 2.0**-25 / k
        f, sizes = (lambda m, x, k: _scaled(m, x, share)), (min(64 * k, 65000), 2)
    a, b = Model(), Model()
    for model, make in ((a, f), (b, lambda m, x, k: m.op("Identity", x))):
        x = model.input("x", "f32", ["N"])
        model.output(make(model, x, k), "f32")
    feeds = [{"x": floats(rng, [n])} for n in sizes]
    return Pair(a.build(), b.build(), equal, feeds, what, tolerance=1e-2 if equal else 1e-7 if what == "share" else 1e-4)


def _extent(m, x, axis):
    return m.op("Slice", _shape(m, x), m.constant([axis], "i64"), m.constant([axis + 1], "i64"))


def _beyond(m, value, limit):
    return m.op("Greater", value, m.constant([limit], "i64"))


def _equals(m, value, number):
    return m.op("Equal", value, m.constant([number], "i64"))


# Conditions on x[N, M] and two numbers, with sizes at which they hold: x changes its sign there.
_JOINT = {
    "N == 1 and M > k": lambda m, n, c, k, j: (m.op("And", _equals(m, n, 1), _beyond(m, c, k)), (1, k + 1)),
    "N > j and M > k": lambda m, n, c, k, j: (m.op("And", _beyond(m, n, j), _beyond(m, c, k)), (j + 1, k + 1)),
    "min > j": lambda m, n, c, k, j: (_beyond(m, m.op("Min", n, c), j), (j + 1, j + 1)),
    "N == M > j": lambda m, n, c, k, j: (m.op("And", m.op("Equal", n, c), _beyond(m, n, j)), (j + 1, j + 1)),
    "N - M > k": lambda m, n, c, k, j: (m.op("And", _beyond(m, m.op("Sub", n, c), k), _beyond(m, c, 1)), (k + 4, 3)),
    "N M > k": lambda m, n, c, k, j: (_beyond(m, m.op("Mul", n, c), k), (k // 2, 3)),
}


@attack
def joint_sizes(rng):
    """Two dimensions matter together; B may give them other names, or none."""
    equal = rng.random() < 0.3
    what = rng.choice(sorted(_JOINT))
    k, j = rng.choice([4, 9, 40, 90, 150]), rng.choice([4, 10, 28, 60])
    names = rng.choice([["N", "M"], ["batch", "length"], ["M", "N"], [None, None], ["?", "?"]])
    models, sizes = [], None
    for changes, dimensions in ((True, ["N", "M"]), (equal, names)):
        m = Model()
        x = m.input("x", "f32", dimensions)
        condition, sizes = _JOINT[what](m, _extent(m, x, 0), _extent(m, x, 1), k, j)
        models.append(m.output(m.op("Where", condition, m.op("Neg", x), x) if changes else m.op("Identity", x), "f32"))
    feeds = [{"x": floats(rng, list(sizes))}, {"x": floats(rng, [2, 3])}]
    return Pair(models[0].build(), models[1].build(), equal, feeds, f"{what}, B's names {names}")


@attack
def small_strides(rng):
    """Pools whose windows are counted up or down: they differ where the last window is not whole."""
    equal = rng.random() < 0.2
    stride, pad = rng.randrange(3, 12), rng.randrange(1, 5)
    kernel = 2 * pad + 1  # N = 1 has a window, too
    a, b = Model(), Model()
    for model, ceil in ((a, 1), (b, 1 if equal else 0)):
        x = model.input("x", "f32", [1, 1, "N"])
        y = model.op("MaxPool", x, kernel_shape=[kernel], strides=[stride], pads=[pad, pad], ceil_mode=ceil)
        model.output(model.op("ReduceSum", y, keepdims=0), "f32")
    feeds = [{"x": floats(rng, [1, 1, n])} for n in range(kernel, kernel + 2 * stride)]
    return Pair(a.build(), b.build(), equal, feeds, f"kernel {kernel}, stride {stride}, pad {pad}")
