"""What another output, or another element, computes excuses nothing."""
import numpy

from tests.attacks.pair import Model, Pair, attack, decorate, floats

# A partial function of x, and an input for which it is no finite number.
_PARTIAL = {
    "log": (lambda m, x: m.op("Log", x), 0.0),
    "log of negative": (lambda m, x: m.op("Log", x), -1.0),
    "reciprocal": (lambda m, x: m.op("Reciprocal", x), 0.0),
    "division": (lambda m, x: m.op("Div", m.constant(3), x), 0.0),
    "sqrt": (lambda m, x: m.op("Sqrt", x), -1.0),
    "pow": (lambda m, x: m.op("Pow", x, m.constant(-1.5)), 0.0),
    "acos": (lambda m, x: m.op("Acos", x), 2.0),
    "log of relu": (lambda m, x: m.op("Log", m.op("Relu", x)), -1.0),
    "by sum": (lambda m, x: m.op("Div", x, m.op("ReduceSum", x, m.constant([0], "i64"), keepdims=1)), 0.0),
}
_ZERO = {
    "u - u": lambda m, u: m.op("Sub", u, u),
    "0 u": lambda m, u: m.op("Mul", u, m.constant(0)),
    "u - (u + u) + u": lambda m, u: m.op("Add", m.op("Sub", u, m.op("Add", u, u)), u),
}


@attack
def outputs_excuse_nothing(rng):
    n = rng.randrange(1, 5)
    what, zero = rng.choice(sorted(_PARTIAL)), rng.choice(sorted(_ZERO))
    partial, bad = _PARTIAL[what]
    where = rng.choice(["output", "concat", "same", "element"])
    a, b = Model(), Model()
    for model, second in ((a, False), (b, True)):
        x, z = model.input("x", "f32", [n]), model.input("z", "f32", [n])
        u = partial(model, decorate(rng, model, x, [n]))
        w = model.op("Tanh", z)
        if where == "same":
            y = model.op("Add", w, u)
            y = model.op("Add", y, _ZERO[zero](model, u)) if second else y
            model.output(y, "f32")
            continue
        other = model.op("Add", w, _ZERO[zero](model, u)) if second else w
        if where == "output":
            model.output(u, "f32").output(other, "f32")
        elif where == "concat":
            model.output(decorate(rng, model, model.op("Concat", u, other, axis=0), [2 * n]), "f32")
        else:
            # The elements of u and of the other in turn.
            columns = [model.op("Unsqueeze", v, model.constant([1], "i64")) for v in (u, other)]
            model.output(model.op("Concat", *columns, axis=1), "f32")
    feeds = [{"x": numpy.full([n], bad, numpy.float32), "z": floats(rng, [n])}]
    return Pair(a.build(), b.build(), where == "same", feeds, f"{zero} of {what} in another {where}")


@attack
def guarded(rng):
    """y r / r with r = relu(y), and quotients under a guard."""
    n = rng.randrange(1, 5)
    kind = rng.randrange(3)
    a, b = Model(), Model()
    for model, second in ((a, False), (b, True)):
        x, z = model.input("x", "f32", [n]), model.input("z", "f32", [n])
        if kind == 0:
            r = model.op("Relu", x)
            y = model.op("Div", model.op("Mul", z, r), r) if second else z
        else:
            keep = model.op("Greater", x, model.constant(0))
            quotient = model.op("Div", z, x)
            if second:
                quotient = model.op("Neg", model.op("Div", model.op("Neg", z), x))
            y = model.op("Where", keep, quotient, z)
            if kind == 2 and second:
                y = model.op("Add", y, model.op("Sub", quotient, quotient))
        model.output(decorate(rng, model, y, [n]), "f32")
    feeds = [{"x": numpy.full([n], v, numpy.float32), "z": floats(rng, [n], 0.5, 2)} for v in (0.0, -1.0, 1.0)]
    return Pair(a.build(), b.build(), kind == 1, feeds, ["r / r", "same guard", "outside its guard"][kind])


# Each pair is equal where u is a number; where u is NaN the comparison is false, and one side is a number.
_CHOICES = {
    "minimum": (lambda m, u, c: m.op("Where", m.op("Less", u, c), u, c), lambda m, u, c: m.op("Min", u, c)),
    "maximum": (lambda m, u, c: m.op("Where", m.op("Greater", u, c), u, c), lambda m, u, c: m.op("Max", u, c)),
    "negation": (lambda m, u, c: m.op("Where", m.op("LessOrEqual", u, c), c, m.op("Neg", c)),
                 lambda m, u, c: m.op("Where", m.op("Less", c, u), m.op("Neg", c), c)),
    "clip": (lambda m, u, c: m.op("Where", m.op("Less", u, c), m.op("Max", u, m.op("Neg", c)), c),
             lambda m, u, c: m.op("Min", m.op("Max", u, m.op("Neg", c)), c)),
    "same": (lambda m, u, c: m.op("Where", m.op("Less", u, c), c, u), lambda m, u, c: m.op("Max", u, c)),
}


@attack
def comparisons_of_undefined(rng):
    n = rng.randrange(1, 5)
    what, choice = rng.choice(sorted(_PARTIAL)), rng.choice(sorted(_CHOICES))
    if what in ("log", "reciprocal", "division", "pow", "log of relu", "by sum"):
        what = "log of negative"  # NaN, not an infinity
    partial, bad = _PARTIAL[what]
    limit = rng.choice([6, 1.5, 40])
    a, b = Model(), Model()
    for model, second in ((a, False), (b, True)):
        u = partial(model, decorate(rng, model, model.input("x", "f32", [n]), [n]))
        y = _CHOICES[choice][second](model, u, model.constant(limit))
        model.output(decorate(rng, model, y, [n]), "f32")
    feeds = [{"x": numpy.full([n], bad, numpy.float32)}, {"x": floats(rng, [n], 0.5, 2)}]
    return Pair(a.build(), b.build(), choice == "same", feeds, f"{choice} at {limit} of {what}")


def _below(m, x, yes, no):
    return m.op("Where", m.op("Less", x, m.constant(0)), yes, no)


def _above(m, x, yes, no):
    return m.op("Where", m.op("Greater", x, m.constant(0)), yes, no)


def _leaky(m, x, f):
    relu = m.op("Relu", x)
    return m.op("Add", relu, m.op("Mul", m.op("Sub", x, relu), f))


# Each pair is equal where the factor f is a number. Elsewhere one side still is a number for some x: 0 or 1.
_BRANCHES = {
    "other branch at zero": (lambda m, x, f: _above(m, x, m.op("Mul", x, f), m.op("Neg", x)),
                             lambda m, x, f: _below(m, x, m.op("Neg", x), m.op("Mul", x, f))),
    "slope as a factor": (lambda m, x, f: _below(m, x, m.op("Mul", x, f), x), _leaky),
    "slope of PRelu as a factor": (lambda m, x, f: m.op("PRelu", x, f), _leaky),
    "same": (lambda m, x, f: _above(m, x, m.op("Mul", x, f), m.op("Neg", x)),
             lambda m, x, f: _above(m, x, m.op("Mul", f, x), m.op("Neg", x))),
}


@attack
def undefined_branches(rng):
    n = rng.randrange(1, 5)
    what, kind = rng.choice(sorted(_PARTIAL)), rng.choice(sorted(_BRANCHES))
    partial, bad = _PARTIAL[what]
    a, b = Model(), Model()
    for model, second in ((a, False), (b, True)):
        x, w = model.input("x", "f32", [n]), model.input("w", "f32", [n])
        y = _BRANCHES[kind][second](model, x, partial(model, decorate(rng, model, w, [n])))
        model.output(decorate(rng, model, y, [n]), "f32")
    bads = numpy.full([n], bad, numpy.float32)
    feeds = [{"x": numpy.full([n], v, numpy.float32), "w": bads} for v in (0.0, 1.0)]
    feeds.append({"x": floats(rng, [n]), "w": floats(rng, [n], 0.5, 0.9)})
    return Pair(a.build(), b.build(), kind == "same", feeds, f"{kind}, {what}")
