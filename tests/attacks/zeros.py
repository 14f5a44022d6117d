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
