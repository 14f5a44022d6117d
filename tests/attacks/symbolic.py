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
