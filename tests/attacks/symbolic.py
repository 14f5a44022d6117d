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
