"""Zeros have a sign: 1 / -0 is another infinity than 1 / 0, and a function may make numbers of both."""
import numpy

from tests.attacks.pair import Model, Pair, attack, decorate

# Two zeros at x = 0 that are formally equal and differ in sign at the inputs that are given.
_ZEROS = {
    "-x and 0 - x": (lambda m, x: m.op("Neg", x), lambda m, x: m.op("Sub", m.constant(0), x), 0.0),
    "x and x + 0": (lambda m, x: m.op("Identity", x), lambda m, x: m.op("Add", x, m.constant(0)), -0.0),
    "x and 3 x - 2 x": (lambda m, x: m.op("Identity", x),
                        lambda m, x: m.op("Sub", m.op("Mul", x, m.constant(3)), m.op("Mul", x, m.constant(2))), -0.0),
    "x - z and -(z - x)": (lambda m, x: m.op("Sub", m.op("Sub", x, m.constant(2)), m.constant(-2)),
                           lambda m, x: m.op("Neg", m.op("Sub", m.constant(2), m.op("Add", x, m.constant(2)))), 0.0),
    "0 and -0": (lambda m, x: m.constant(0.0), lambda m, x: m.constant(-0.0), 1.0),
    "0 x and -0 x": (lambda m, x: m.op("Mul", x, m.constant(0.0)), lambda m, x: m.op("Mul", x, m.constant(-0.0)), 1.0),
}
_INVERSES = {
    "reciprocal": lambda m, u: m.op("Reciprocal", u),
    "quotient": lambda m, u: m.op("Div", m.constant(2), u),
    "power": lambda m, u: m.op("Pow", u, m.constant(-1)),
    "cube": lambda m, u: m.op("Div", m.constant(1), m.op("Mul", m.op("Mul", u, u), u)),
}
_FUNCTIONS = {
    "Tanh": lambda m, v: m.op("Tanh", v),
    "Exp": lambda m, v: m.op("Exp", v),
    "Sigmoid": lambda m, v: m.op("Sigmoid", v),
    "Clip": lambda m, v: m.op("Clip", v, m.constant(-1), m.constant(3)),
    "Atan": lambda m, v: m.op("Atan", v),
    "Less": lambda m, v: m.op("Cast", m.op("Less", v, m.constant(0.5)), to=1),
    "where": lambda m, v: m.op("Where", m.op("Less", v, m.constant(0)), m.constant(7), m.constant(8)),
    "ArgMax": lambda m, v: m.op("Cast", m.op("ArgMax", m.op("Concat", v, m.constant([0.25]), axis=0), axis=0, keepdims=1), to=1),
}
# Zeros whose sign is known or the same, and functions in which it does not count.
_SAME = {
    "|x|": (lambda m, x: m.op("Abs", x), lambda m, x: m.op("Abs", m.op("Neg", x))),
    "x x": (lambda m, x: m.op("Mul", x, x), lambda m, x: m.op("Mul", m.op("Neg", x), m.op("Neg", x))),
    "norm": (lambda m, x: m.op("ReduceL2", x, keepdims=1), lambda m, x: m.op("ReduceL2", m.op("Identity", x), keepdims=1)),
    "x": (lambda m, x: m.op("Identity", x), lambda m, x: m.op("Identity", x)),
}


@attack
def signs_of_zeros(rng):
    n = rng.randrange(1, 4)
    equal = rng.random() < 0.3
    what = rng.choice(sorted(_SAME if equal else _ZEROS))
    f, g, zero = (*_SAME[what], 0.0) if equal else _ZEROS[what]
    inverse, function = rng.choice(sorted(_INVERSES)), rng.choice(sorted(_FUNCTIONS))
    if not equal and what in ("0 and -0", "0 x and -0 x") and function == "ArgMax":
        function = "Tanh"  # a constant has one element
    n = 1 if function == "ArgMax" else n
    a, b = Model(), Model()
    for model, make in ((a, f), (b, g)):
        x = model.input("x", "f32", [n])
        u = make(model, decorate(rng, model, x, [n]) if equal else x)
        y = _FUNCTIONS[function](model, _INVERSES[inverse](model, u))
        model.output(model.op("Mul", x, y) if zero == 1.0 else y, "f32")
    feeds = [{"x": numpy.full([n], zero, numpy.float32)}]
    return Pair(a.build(), b.build(), equal, feeds, f"{function} of a {inverse}, {what}")


def _row_sum(m, v):
    return m.op("ReduceSum", v, m.constant([1], "i64"), keepdims=1)


def _whole(m, x, w):
    return m.op("MatMul", x, m.constant(w))


def _by_halves(m, x, w):
    return m.op("Add", m.op("MatMul", x, m.constant(w / 2)), m.op("MatMul", x, m.constant(w / 2)))


def _normalized(product):
    def make(m, x, w):
        h = product(m, x, w)
        return m.op("Relu", m.op("Div", h, _row_sum(m, h)))
    return make


def _linear_attention(divide_first, sum_as_product):
    def make(m, x, w):
        k = m.op("Relu", x)
        total = m.op("MatMul", k, m.constant(numpy.ones((w.shape[0], 1), numpy.float32))) if sum_as_product else _row_sum(m, k)
        if divide_first:
            return m.op("Tanh", m.op("MatMul", m.op("Div", k, total), m.constant(w)))
        return m.op("Tanh", m.op("Div", m.op("MatMul", k, m.constant(w)), total))
    return make


# Quotients whose divisor may be zero of either sign, written in two ways that agree.
_QUOTIENTS = {
    "a sign before a function": (
        lambda m, x, w: m.op("Tanh", m.op("Div", x, m.op("Add", m.op("Abs", x), m.constant(1)))),
        lambda m, x, w: m.op("Tanh", m.op("Neg", m.op("Div", m.op("Neg", x), m.op("Add", m.op("Abs", x), m.constant(1)))))),
    "by a sum or its inverse": (
        lambda m, x, w: m.op("Relu", m.op("Div", x, _row_sum(m, x))),
        lambda m, x, w: m.op("Relu", m.op("Mul", x, m.op("Reciprocal", _row_sum(m, x))))),
    "a product by halves": (_normalized(_whole), _normalized(_by_halves)),
    "the inverse of a negative": (
        lambda m, x, w: m.op("Tanh", m.op("Reciprocal", m.op("Neg", x))),
        lambda m, x, w: m.op("Tanh", m.op("Neg", m.op("Reciprocal", x)))),
    "a factor in the divisor": (
        lambda m, x, w: m.op("Tanh", m.op("Reciprocal", m.op("Mul", m.constant(2), x))),
        lambda m, x, w: m.op("Tanh", m.op("Div", m.constant(0.5), x))),
    "addends in another order": (
        lambda m, x, w: m.op("Tanh", m.op("Add", m.op("Reciprocal", x), x)),
        lambda m, x, w: m.op("Tanh", m.op("Add", x, m.op("Div", m.constant(1), x)))),
    "linear attention": (_linear_attention(False, False), _linear_attention(True, False)),
    "a sum as a product": (_linear_attention(False, False), _linear_attention(False, True)),
    "a transpose": (
        lambda m, x, w: m.op("Transpose", m.op("Tanh", m.op("Reciprocal", m.op("Sin", x))), perm=[1, 0]),
        lambda m, x, w: m.op("Tanh", m.op("Reciprocal", m.op("Sin", m.op("Transpose", x, perm=[1, 0]))))),
}


@attack
def quotients(rng):
    rows, columns = rng.randrange(2, 6), rng.randrange(2, 7)
    what = rng.choice(sorted(_QUOTIENTS))
    draws = numpy.random.default_rng(rng.randrange(2**32))
    w = draws.standard_normal((columns, columns)).astype(numpy.float32)
    models = []
    for make in _QUOTIENTS[what]:
        model = Model()
        model.output(make(model, model.input("x", "f32", [rows, columns]), w), "f32")
        models.append(model.build())
    feeds = [{"x": draws.standard_normal((rows, columns)).astype(numpy.float32)}]
    return Pair(*models, True, feeds, what)
