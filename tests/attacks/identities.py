"""Casts that change nothing, and integer sums and products in another order."""
import numpy

from tests.attacks.integers import LIMITS, wrapped
from tests.attacks.pair import DTYPES, Model, Pair, attack, decorate
from tests.attacks.rewrites import LOSS, rewrite

_CASTABLE = {
    "Relu": lambda m, x, t: m.op("Relu", x),
    "Sigmoid": lambda m, x, t: m.op("Sigmoid", x),
    "Exp": lambda m, x, t: m.op("Exp", x),
    "Softmax": lambda m, x, t: m.op("Softmax", x, axis=-1),
    "Mul": lambda m, x, t: m.op("Mul", x, m.constant(0.75, t)),
    "Add": lambda m, x, t: m.op("Add", x, m.constant(8, t)),
    "ReduceMax": lambda m, x, t: m.op("ReduceMax", x, keepdims=1),
    "Abs": lambda m, x, t: m.op("Abs", x),
    "MatMul": lambda m, x, t: m.op("Relu", m.op("MatMul", x, m.constant([[0.5, -1], [2, 1.5]], t))),
}


def _cast(model, value, dtype):
    return model.op("Cast", value, to=DTYPES[dtype][0])


_DIGITS = {"f16": 11, "f32": 24, "f64": 53}


@attack
def casts(rng):
    """Casts that a converter sets around an operator: a wider dtype changes nothing, a narrower one loses digits."""
    outer, inner = rng.sample(sorted(_DIGITS), 2)
    shape = [rng.randrange(1, 4), 2]
    what = rng.choice(sorted(_CASTABLE))
    function = _CASTABLE[what]
    narrows = _DIGITS[inner] < _DIGITS[outer]
    equal = not narrows and rng.random() < 0.75
    around = rng.random() < 0.6

    def first(m, x):
        return function(m, x, outer)

    def second(m, x):
        if around:
            y = _cast(m, function(m, _cast(m, x, inner), inner), outer)
        else:
            y = function(m, _cast(m, _cast(m, x, inner), outer), outer)
        return y if equal or narrows else m.op("Mul", y, m.constant(1.5, outer))
    forms = [first, second]
    rng.shuffle(forms)
    pair = rewrite(rng, forms, shape, f"{what} {outer} {'in' if around else 'behind'} {inner}", equal, outer, opset=17)
    pair.tolerance = 2.0 ** -(_DIGITS[inner] + 2) if narrows else LOSS[outer]
    return pair


@attack
def integer_casts(rng):
    """Integers through another dtype and back: the same where the other holds them all."""
    outer = rng.choice(sorted(LIMITS))
    inner = rng.choice([t for t in ("i8", "u8", "i32", "i64", "f32", "f64") if t != outer])
    holds = {"i8": ("i32", "i64", "f32", "f64"), "u8": ("i32", "i64", "f32", "f64"), "i32": ("i64", "f64"), "i64": ()}[outer]
    n = rng.randrange(1, 4)
    models = Model(), Model()
    for k, m in enumerate(models):
        x = m.input("x", outer, [n])
        y = _cast(m, _cast(m, x, inner), outer) if k else x
        m.output(m.op("Add", y, m.constant(1, outer)) if outer in ("i32", "i64") else y, outer)
    low, high = LIMITS[outer]
    values = [low, high, 2**53 + 1, 2**24 + 1, 200, -100, 2**40 + 1] + [rng.randrange(low, high + 1) for _ in range(4)]
    if inner[0] == "f":  # what a float above the largest integer becomes is nobody's promise
        values = [v for v in values if abs(v) < 2**62]
    feeds = [{"x": numpy.full([n], v).astype(DTYPES[outer][1])} for v in values if low <= v <= high]
    return Pair(*(m.build() for m in models), inner in holds, feeds, f"{outer} through {inner}")


# Function of x with integers p and q: forms of (model, constant of an integer, x, p, q). Sums and products wrap.
_RING = {
    "x": [
        lambda m, c, x, p, q: m.op("Identity", x),
        lambda m, c, x, p, q: m.op("Add", x, c(m, 0)),
        lambda m, c, x, p, q: m.op("Mul", c(m, 1), x),
        lambda m, c, x, p, q: m.op("Sub", x, c(m, 0)),
        lambda m, c, x, p, q: m.op("Sub", m.op("Mul", x, c(m, 2)), x),
        lambda m, c, x, p, q: m.op("Sub", m.op("Add", x, x), x),
        lambda m, c, x, p, q: m.op("Sub", m.op("Add", x, c(m, p)), c(m, p)),
        lambda m, c, x, p, q: m.op("Sub", c(m, p), m.op("Sub", c(m, p), x)),
        lambda m, c, x, p, q: m.op("Sub", m.op("Mul", x, c(m, p)), m.op("Mul", x, c(m, p - 1))),
        lambda m, c, x, p, q: m.op("Mul", m.op("Mul", x, c(m, -1)), c(m, -1)),
        lambda m, c, x, p, q: m.op("Where", m.op("Less", x, c(m, p)), x, x),
    ],
    "0": [
        lambda m, c, x, p, q: m.op("Sub", x, x),
        lambda m, c, x, p, q: m.op("Mul", x, c(m, 0)),
        lambda m, c, x, p, q: m.op("Sub", m.op("Mul", x, c(m, p)), m.op("Mul", c(m, p), x)),
        lambda m, c, x, p, q: m.op("Sub", m.op("Sub", m.op("Add", x, c(m, p)), c(m, p)), x),
    ],
    "x + p + q": [
        lambda m, c, x, p, q: m.op("Add", x, c(m, p + q)),
        lambda m, c, x, p, q: m.op("Add", m.op("Add", x, c(m, p)), c(m, q)),
        lambda m, c, x, p, q: m.op("Add", c(m, p), m.op("Add", c(m, q), x)),
        lambda m, c, x, p, q: m.op("Sub", x, m.op("Sub", c(m, -p), c(m, q))),
        lambda m, c, x, p, q: m.op("Sub", m.op("Add", x, c(m, p)), c(m, -q)),
    ],
    "q (x + p)": [
        lambda m, c, x, p, q: m.op("Mul", m.op("Add", x, c(m, p)), c(m, q)),
        lambda m, c, x, p, q: m.op("Add", m.op("Mul", c(m, q), x), c(m, p * q)),
        lambda m, c, x, p, q: m.op("Sub", m.op("Mul", x, c(m, q)), m.op("Mul", c(m, -p), c(m, q))),
    ],
    "(x + p)^2": [
        lambda m, c, x, p, q: m.op("Mul", m.op("Add", x, c(m, p)), m.op("Add", c(m, p), x)),
        lambda m, c, x, p, q: m.op("Add", m.op("Add", m.op("Mul", x, x), m.op("Mul", x, c(m, 2 * p))), c(m, p * p)),
        lambda m, c, x, p, q: m.op("Add", m.op("Mul", x, m.op("Add", x, c(m, 2 * p))), m.op("Mul", c(m, p), c(m, p))),
    ],
}


@attack
def integer_identities(rng):
    """Sums and products of integers of every width in another order, wrapped."""
    dtype = rng.choice(sorted(LIMITS))
    low, high = LIMITS[dtype]
    what = rng.choice(sorted(_RING))
    p, q = (rng.choice([rng.randrange(1, 9), rng.randrange(low, high + 1)]) for _ in range(2))
    forms = rng.choice(_RING[what]), rng.choice(_RING[what])
    equal = rng.random() < 0.75
    shape = [rng.randrange(1, 4) for _ in range(rng.randrange(1, 3))]
    c = lambda m, v: m.constant(wrapped(v, dtype), dtype)
    models = Model(), Model()
    trap = rng.randrange(3)
    for k, (m, form) in enumerate(zip(models, forms)):
        x = decorate(rng, m, m.input("x", dtype, shape), shape, dtype)
        y = form(m, c, x, p, q)
        if k and not equal:
            if trap == 0:
                y = m.op("Add", y, c(m, 1))
            elif trap == 1:  # 2 y / 2 loses a bit
                y = m.op("Div", m.op("Add", m.op("Mul", y, c(m, 2)), c(m, 2)), c(m, 2))
            else:
                y = m.op("Sub", y, m.op("Mul", x, c(m, high // 2 + 1)))
        m.output(decorate(rng, m, y, shape, dtype), dtype)
    feeds = [{"x": numpy.full(shape, v).astype(DTYPES[dtype][1])} for v in (0, 1, 3, low, high, high // 2 + 2)]
    return Pair(*(m.build() for m in models), equal, feeds, f"{what} in {dtype}")
