"""Literals that are nearly a constant: they count as the constant only up to the precision in which they are used."""
import numpy

from tests.attacks.pair import DTYPES, Model, Pair, attack, decorate, floats

_CONSTANTS = {"1/3": 1 / 3, "1/9": 1 / 9, "sqrt 1/2": 0.5**0.5, "sqrt 2": 2**0.5, "1/6": 1 / 6, "0.044715": 0.044715}


@attack
def rounded_in_float64(rng):
    """A constant rounded to float32 in a program of float64."""
    n = rng.randrange(1, 5)
    what = rng.choice(sorted(_CONSTANTS))
    exact = _CONSTANTS[what]
    equal = rng.random() < 0.25
    other = exact if equal else float(numpy.float32(exact))
    use = rng.choice(["scale", "threshold", "amplified", "compare", "floor"])
    a, b = Model(), Model()
    for model, c in ((a, exact), (b, other)):
        x = decorate(rng, model, model.input("x", "f64", [n]), [n], "f64")
        c = model.constant(c, "f64")
        dtype = "f64"
        if use == "scale":
            y = model.op("Mul", x, c)
        elif use == "threshold":
            y = model.op("Relu", model.op("Sub", model.op("Mul", x, c), model.constant(1e6, "f64")))
        elif use == "amplified":
            y = model.op("Mul", model.op("Sub", model.op("Mul", x, c), x), model.constant(2.0**40, "f64"))
        elif use == "compare":
            y, dtype = model.op("Less", x, c), "bool"
        else:
            y = model.op("Floor", model.op("Mul", x, c))
        model.output(y, dtype)
    between = (exact + other) / 2
    feeds = [{"x": numpy.full([n], between)}, {"x": numpy.full([n], 1e6 / exact * (1 + 1e-9))},
             {"x": numpy.full([n], 1e9)}, {"x": floats(rng, [n], dtype="f64")}]
    if use == "floor":
        for k in (1, 10, 1000, 10**7):
            feeds.append({"x": numpy.full([n], k / max(exact, other) * (1 + 2e-16))})
            feeds.append({"x": numpy.full([n], k / min(exact, other) * (1 - 1e-9))})
            feeds.append({"x": numpy.full([n], k * 2 / (exact + other))})
    return Pair(a.build(), b.build(), equal, feeds, f"{what} {use}", tolerance=1e-14)


@attack
def thresholds(rng):
    """One ulp in a comparison, a cast or an index."""
    n = rng.randrange(1, 4)
    dtype = rng.choice(["f32", "f64"])
    exact = DTYPES[dtype][1](rng.choice([1 / 3, 1 / 7, 2.0**0.5, 0.1]))
    equal = rng.random() < 0.25
    other = exact if equal else numpy.nextafter(exact, DTYPES[dtype][1](rng.choice([-9, 9])))
    use = rng.choice(["Less", "LessOrEqual", "Greater", "Equal", "where"])
    a, b = Model(), Model()
    for model, c in ((a, exact), (b, other)):
        x = decorate(rng, model, model.input("x", dtype, [n]), [n], dtype)
        c = model.constant(c, dtype)
        if use == "where":
            y = model.op("Where", model.op("Less", x, c), model.op("Neg", x), x)
            model.output(y, dtype)
        else:
            model.output(model.op(use, x, c), "bool")
    feeds = [{"x": numpy.full([n], v, DTYPES[dtype][1])} for v in (exact, other, numpy.nextafter(min(exact, other), DTYPES[dtype][1](-9)))]
    return Pair(a.build(), b.build(), equal, feeds, f"{use} with one ulp", tolerance=0)


_HOLDERS = {
    "Clip": lambda m, v, c: m.op("Clip", v, m.constant(c), m.constant(4)),
    "Max": lambda m, v, c: m.op("Max", v, m.constant(c)),
    "Pad": lambda m, v, c: m.op("Pad", v, m.constant([0, 1], "i64"), m.constant(c)),
    "Concat": lambda m, v, c: m.op("Concat", v, m.constant([c]), axis=0),
    "Where": lambda m, v, c: m.op("Where", m.op("Less", v, m.constant(0.5)), m.constant(c), v),
}


@attack
def held_numbers(rng):
    """A narrowing cast of f16 numbers and of a number that a node holds, which f16 may not have."""
    name, n = rng.choice(sorted(_HOLDERS)), rng.randrange(1, 4)
    equal = rng.random() < 0.4
    held = rng.randrange(1, 64) / 64 if equal else rng.choice([0.1, 0.3, 1 / 3, 0.7, 1 + 2**-11, 0.60001])
    a, b = Model(), Model()
    for model, casts in ((a, False), (b, True)):
        x = model.op("Cast", model.input("x", "f16", [n]), to=1)
        y = _HOLDERS[name](model, x, held)
        if casts:
            y = model.op("Cast", model.op("Cast", y, to=10), to=1)
        model.output(y, "f32")
    return Pair(a.build(), b.build(), equal, [{"x": numpy.zeros([n], numpy.float16)}], f"{name} of {held:.5g}", tolerance=1e-6)
