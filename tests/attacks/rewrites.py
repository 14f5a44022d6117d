"""Rewrites of values as exporters and simplifiers write them: defaults written out, bodies, folded scalars, selects."""
import math

import numpy

from tests.attacks.pair import DTYPES, Model, Pair, attack, decorate, floats

LOSS = {"f16": 3e-2, "f32": 1e-3, "f64": 1e-5}


def narrow(value, dtype):
    """What an attribute, or a file of halves, holds of a number."""
    return float(numpy.float16(value) if dtype == "f16" else numpy.float32(value))


def rewrite(rng, forms, shape, what, equal, dtype="f32", opset=20, span=3.0, results=None):
    """A pair of y = forms[0](model, x) and y = forms[1](model, x)."""
    models = Model(opset), Model(opset)
    for model, form in zip(models, forms):
        x = decorate(rng, model, model.input("x", dtype, shape), shape, dtype)
        y = form(model, x)
        model.output(decorate(rng, model, y, results, dtype) if results else y, dtype)
    feeds = [{"x": floats(rng, shape, -s, s, dtype)} for s in (span, span / 100, 4 * span)]
    return Pair(models[0].build(), models[1].build(), equal, feeds, what, tolerance=LOSS[dtype])


def missed(rng, numbers, dtype):
    """The same numbers but for one that is visibly another."""
    others = dict(numbers)
    key = rng.choice(sorted(others))
    others[key] = narrow(others[key] * rng.choice([0.5, 1.5, 2]) if others[key] else 0.5, dtype)
    return others


# Operator: (defaults, opset, ranks, attributes that must be written, further operands by number of channels). Epsilons miss by a factor.
_DEFAULTS = {
    "LRN": ({"alpha": 1e-4, "beta": 0.75, "bias": 1.0}, 13, [3, 4], {"size": 3}, 0),
    "HardSigmoid": ({"alpha": 0.2, "beta": 0.5}, 6, [1, 2, 4], {}, 0),
    "LeakyRelu": ({"alpha": 0.01}, 16, [1, 2, 4], {}, 0),
    "Elu": ({"alpha": 1.0}, 6, [1, 2, 4], {}, 0),
    "Selu": ({"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}, 6, [1, 2, 4], {}, 0),
    "Celu": ({"alpha": 1.0}, 12, [1, 2, 4], {}, 0),
    "ThresholdedRelu": ({"alpha": 1.0}, 10, [1, 2, 4], {}, 0),
    "BatchNormalization": ({"epsilon": 1e-5, "momentum": 0.9}, 15, [2, 3, 4], {}, 4),
    "InstanceNormalization": ({"epsilon": 1e-5}, 6, [3, 4], {}, 2),
    "LayerNormalization": ({"epsilon": 1e-5, "axis": -1, "stash_type": 1}, 17, [2, 3], {}, -2),
    "Softmax": ({"axis": -1}, 13, [2, 3], {}, 0),
    "LogSoftmax": ({"axis": -1}, 13, [2, 3], {}, 0),
    "Flatten": ({"axis": 1}, 13, [2, 3, 4], {}, 0),
    "ReduceSum": ({"keepdims": 1, "noop_with_empty_axes": 0}, 13, [1, 2, 3], {}, 0),
    "ReduceMax": ({"keepdims": 1}, 13, [1, 2, 3], {}, 0),
    "LpNormalization": ({"axis": -1, "p": 2}, 1, [2, 3], {}, 0),
    "MaxPool": ({"strides": [1, 1], "dilations": [1, 1], "pads": [0, 0, 0, 0], "ceil_mode": 0, "auto_pad": "NOTSET", "storage_order": 0},
                12, [4], {"kernel_shape": [2, 2]}, 0),
    "AveragePool": ({"strides": [1, 1], "pads": [0, 0, 0, 0], "ceil_mode": 0, "count_include_pad": 0}, 11, [4],
                    {"kernel_shape": [2, 2]}, 0),
}
_FLOATS = ("alpha", "beta", "bias", "gamma", "epsilon")


@attack
def default_attributes(rng):
    """Attributes left out against written."""
    kind = rng.choice(sorted(_DEFAULTS))
    defaults, opset, ranks, needed, operands = _DEFAULTS[kind]
    shape = [rng.randrange(2, 6) for _ in range(rng.choice(ranks))]
    channels = shape[-1] if operands < 0 else shape[1] if operands else 0
    seed = rng.randrange(2**30)
    written = {key: value for key, value in defaults.items() if rng.random() < 0.8}
    numbers = [key for key in _FLOATS if key in defaults]
    equal = not numbers or rng.random() < 0.75
    if not equal:
        key = rng.choice(numbers)
        written[key] = {"epsilon": 0.01, "bias": 1.5}.get(key, defaults[key] * (1000 if defaults[key] < 1e-3 else 1.5))

    def form(attributes):
        def make(model, x):
            numbers = numpy.random.default_rng(seed)
            rest = [model.constant(numbers.uniform(0.5, 2, channels)) for _ in range(abs(operands))]
            return model.op(kind, x, *rest, **needed, **attributes)
        return make
    forms = [form({}), form(written)]
    rng.shuffle(forms)
    return rewrite(rng, forms, shape, f"{kind} {'' if equal else 'another ' + key}", equal, opset=max(opset, rng.choice([13, 16, 17])),
                   span=0.3 if "Normalization" in kind else 3)


def _normalized(m, c, x, axes, eps, root):
    mean = m.op("ReduceMean", x, m.constant(axes, "i64"), keepdims=1)
    d = m.op("Sub", x, mean)
    square = m.op("Pow", d, c(2)) if root % 2 else m.op("Mul", d, d)
    total = m.op("Sqrt", m.op("Add", m.op("ReduceMean", square, m.constant(axes, "i64"), keepdims=1), c(eps)))
    return m.op("Div", d, total) if root < 2 else m.op("Mul", d, m.op("Reciprocal", total))


def _lrn(m, c, x, p):
    square = m.op("Unsqueeze", m.op("Mul", x, x), m.constant([1], "i64"))
    mean = m.op("AveragePool", square, kernel_shape=[3, 1, 1], pads=[1, 0, 0, 1, 0, 0], count_include_pad=1)
    sum_of = m.op("Squeeze", mean, m.constant([1], "i64"))
    return m.op("Div", x, m.op("Pow", m.op("Add", m.op("Mul", sum_of, c(p["alpha"])), c(p["bias"])), c(p["beta"])))


def _gelu_tanh(m, c, x, p, cube, root):
    cubed = m.op("Pow", x, c(3)) if cube else m.op("Mul", m.op("Mul", x, x), x)
    inner = m.op("Add", x, m.op("Mul", c(p["cubic"]), cubed))
    inner = m.op("Mul", m.op("Sqrt", m.op("Div", c(2), c(math.pi))) if root else c(math.sqrt(2 / math.pi)), inner)
    return m.op("Mul", m.op("Mul", c(p["half"]), x), m.op("Add", c(1), m.op("Tanh", inner)))


def _gelu_erf(m, c, x, p, root):
    u = [lambda: m.op("Mul", x, c(math.sqrt(0.5))), lambda: m.op("Div", x, c(math.sqrt(2))),
         lambda: m.op("Div", x, m.op("Sqrt", c(2))), lambda: m.op("Mul", x, m.op("Reciprocal", m.op("Sqrt", c(2))))][root]()
    return m.op("Mul", m.op("Mul", x, m.op("Add", m.op("Erf", u), c(1))), c(p["half"]))


def _selu(m, c, x, p):
    return m.op("Sub", m.op("Mul", c(p["alpha"]), m.op("Exp", x)), c(p["alpha"]))


# Operator: (numbers, forms of (model, constant of a number, x, numbers, rank)); the first form is the operator.
_BODIES = {
    "HardSigmoid": ({"alpha": 0.2, "beta": 0.5}, [
        lambda m, c, x, p, n: m.op("HardSigmoid", x, **p),
        lambda m, c, x, p, n: m.op("Clip", m.op("Add", m.op("Mul", x, c(p["alpha"])), c(p["beta"])), c(0), c(1)),
        lambda m, c, x, p, n: m.op("Max", c(0), m.op("Min", c(1), m.op("Add", m.op("Mul", c(p["alpha"]), x), c(p["beta"])))),
    ]),
    "ThresholdedRelu": ({"alpha": 1.0}, [
        lambda m, c, x, p, n: m.op("ThresholdedRelu", x, **p),
        lambda m, c, x, p, n: m.op("Where", m.op("Less", c(p["alpha"]), x), x, c(0)),
        lambda m, c, x, p, n: m.op("Where", m.op("LessOrEqual", x, c(p["alpha"])), c(0), x),
    ]),
    "Selu": ({"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}, [
        lambda m, c, x, p, n: m.op("Selu", x, **p),
        lambda m, c, x, p, n: m.op("Where", m.op("LessOrEqual", x, c(0)), m.op("Mul", c(p["gamma"]), _selu(m, c, x, p)),
                                   m.op("Mul", c(p["gamma"]), x)),
        lambda m, c, x, p, n: m.op("Mul", c(p["gamma"]), m.op("Where", m.op("Greater", x, c(0)), x, _selu(m, c, x, p))),
        lambda m, c, x, p, n: m.op("Mul", c(p["gamma"]), m.op("Elu", x, alpha=p["alpha"])),
    ]),
    "Softplus": ({"one": 1.0}, [
        lambda m, c, x, p, n: m.op("Softplus", x) if p["one"] == 1 else m.op("Log", m.op("Add", m.op("Exp", x), c(p["one"]))),
        lambda m, c, x, p, n: m.op("Log", m.op("Add", m.op("Exp", x), c(p["one"]))),
    ]),
    "Mish": ({"one": 1.0}, [
        lambda m, c, x, p, n: m.op("Mish", x) if p["one"] == 1 else m.op("Mul", x, m.op("Tanh", m.op("Exp", x))),
        lambda m, c, x, p, n: m.op("Mul", c(p["one"]), m.op("Mul", x, m.op("Tanh", m.op("Softplus", x)))),
        lambda m, c, x, p, n: m.op("Mul", x, m.op("Tanh", m.op("Log", m.op("Add", c(p["one"]), m.op("Exp", x))))),
    ]),
    "HardSwish": ({"six": 6.0}, [
        lambda m, c, x, p, n: m.op("HardSwish", x) if p["six"] == 6 else m.op("Mul", x, m.op("HardSigmoid", x)),
        lambda m, c, x, p, n: m.op("Mul", x, m.op("Div", m.op("Clip", m.op("Add", x, c(3)), c(0), c(6)), c(p["six"]))),
        lambda m, c, x, p, n: m.op("Div", m.op("Mul", x, m.op("Min", m.op("Relu", m.op("Add", x, c(3))), c(6))), c(p["six"])),
        lambda m, c, x, p, n: m.op("Mul", x, m.op("HardSigmoid", x, alpha=1 / p["six"])),
    ]),
    "Gelu": ({"half": 0.5}, [
        lambda m, c, x, p, n: m.op("Gelu", x) if p["half"] == 0.5 else m.op("Sigmoid", x),
        *[lambda m, c, x, p, n, r=r: _gelu_erf(m, c, x, p, r) for r in range(4)],
    ]),
    "Gelu tanh": ({"half": 0.5, "cubic": 0.044715}, [
        lambda m, c, x, p, n: m.op("Mul", m.op("Gelu", x, approximate="tanh"), c(2 * p["half"])),
        *[lambda m, c, x, p, n, r=r: _gelu_tanh(m, c, x, p, r % 2, r // 2) for r in range(4)],
    ]),
    "Softmax": ({"one": 1.0}, [
        lambda m, c, x, p, n: m.op("Mul", m.op("Softmax", x), c(p["one"])),
        lambda m, c, x, p, n: m.op("Div", m.op("Exp", x), m.op("ReduceSum", m.op("Exp", x), m.constant([-1], "i64"), keepdims=1)),
        lambda m, c, x, p, n: m.op("Softmax", m.op("Sub", x, m.op("ReduceMax", x, m.constant([-1], "i64"), keepdims=1)), axis=n - 1),
        lambda m, c, x, p, n: m.op("Exp", m.op("LogSoftmax", x)),
    ]),
    "LayerNormalization": ({"epsilon": 1e-5}, [
        lambda m, c, x, p, n: m.op("LayerNormalization", x, m.constant([1] * 4), **p),
        *[lambda m, c, x, p, n, r=r: _normalized(m, c, x, [n - 1], p["epsilon"], r) for r in range(4)],
    ]),
    "InstanceNormalization": ({"epsilon": 1e-5}, [
        lambda m, c, x, p, n: m.op("InstanceNormalization", x, m.constant([1] * 3), m.constant([0] * 3), **p),
        *[lambda m, c, x, p, n, r=r: _normalized(m, c, x, list(range(2, n)), p["epsilon"], r) for r in range(4)],
    ]),
    "LRN": ({"alpha": 0.1, "beta": 0.75, "bias": 1.0}, [
        lambda m, c, x, p, n: m.op("LRN", x, size=3, **p),
        lambda m, c, x, p, n: _lrn(m, c, x, p),
    ]),
}
_SHAPES = {"InstanceNormalization": [2, 3, 4], "LRN": [1, 4, 2, 3]}


@attack
def function_bodies(rng):
    """Operators against their definitions in others."""
    what = rng.choice(sorted(_BODIES))
    numbers, forms = _BODIES[what]
    dtype = "f32" if what in _SHAPES or what in ("LayerNormalization", "Mish", "HardSwish") else rng.choice(["f32", "f32", "f64", "f16"])
    # Attributes are float32 in the file; the operator's own constants are numbers of the dtype.
    numbers = {key: value if key == "cubic" and dtype == "f64" else narrow(value, dtype) for key, value in numbers.items()}
    if what not in ("Selu", "HardSigmoid") and "alpha" in numbers and rng.random() < 0.5:
        numbers["alpha"] = narrow(rng.uniform(0.2, 2), dtype)
    shape = _SHAPES.get(what) or [rng.randrange(1, 4) for _ in range(rng.randrange(0, 3))] + [4]
    equal = rng.random() < 0.75
    others = numbers if equal else missed(rng, {k: v if k != "epsilon" else 0.01 for k, v in numbers.items()}, dtype)
    chosen = [forms[0] if rng.random() < 0.6 else rng.choice(forms[1:]), rng.choice(forms[1:])]
    sides = [(chosen[0], numbers), (chosen[1], others)]
    rng.shuffle(sides)

    def make(form, values):
        return lambda m, x: form(m, lambda v: m.constant(v, dtype), x, values, len(shape))
    return rewrite(rng, [make(*side) for side in sides], shape, f"{what} {dtype}", equal, dtype, results=shape,
                   span=0.3 if "Normalization" in what else 3)


# (name, of nodes, in numpy): what one simplifier leaves and the other folds.
_SCALARS = [
    ("product", lambda m, c, a, b: m.op("Mul", c(a), c(b)), lambda a, b: a * b),
    ("quotient", lambda m, c, a, b: m.op("Div", c(a), c(b)), lambda a, b: a / b),
    ("third", lambda m, c, a, b: m.op("Div", c(1), c(3)), lambda a, b: a.dtype.type(1) / a.dtype.type(3)),
    ("reciprocal", lambda m, c, a, b: m.op("Reciprocal", c(a)), lambda a, b: 1 / a),
    ("root", lambda m, c, a, b: m.op("Sqrt", c(a)), lambda a, b: numpy.sqrt(a)),
    ("one by root", lambda m, c, a, b: m.op("Div", c(1), m.op("Sqrt", c(a))), lambda a, b: 1 / numpy.sqrt(a)),
    ("root of quotient", lambda m, c, a, b: m.op("Sqrt", m.op("Div", c(a), c(b))), lambda a, b: numpy.sqrt(a / b)),
    ("sum", lambda m, c, a, b: m.op("Add", c(a), c(b)), lambda a, b: a + b),
    ("difference", lambda m, c, a, b: m.op("Sub", c(a), c(b)), lambda a, b: a - b),
    ("square", lambda m, c, a, b: m.op("Pow", c(a), c(2)), lambda a, b: a * a),
    ("exponential", lambda m, c, a, b: m.op("Exp", c(a)), lambda a, b: numpy.exp(a)),
    ("negative", lambda m, c, a, b: m.op("Neg", m.op("Mul", c(a), c(b))), lambda a, b: -(a * b)),
]


@attack
def folded_scalars(rng):
    """Expressions of constants as nodes against their float32, or applied one by one."""
    name, nodes, value = rng.choice(_SCALARS)
    dtype = rng.choice(["f32", "f32", "f32", "f64", "f16"])
    number = DTYPES[dtype][1]
    n = rng.randrange(1, 5)
    shape = [2, n]
    several = rng.random() < 0.3
    draw = lambda: rng.choice([2, 3, 8, 48, 64, 0.1, 0.3, math.pi, rng.uniform(0.2, 4)])
    a, b = (numpy.array([draw() for _ in range(n)] if several else draw()).astype(number) for _ in range(2))
    equal = rng.random() < 0.75
    with numpy.errstate(all="ignore"):
        folded = value(a, b) if rng.random() < 0.7 else value(a.astype(numpy.float64), b.astype(numpy.float64))
        folded = numpy.asarray(folded).astype(number) * number(1 if equal else 1.25)
    if not numpy.all(numpy.isfinite(folded)):  # an infinity is no twin of the number that the nodes mean
        return folded_scalars(rng)
    use = rng.choice(["Mul", "Div", "Add", "Sub"] if numpy.all(folded != 0) else ["Mul", "Add", "Sub"])
    if not several and rng.random() < 0.2:
        folded = folded.reshape([1, 1])

    def left(m, x):
        return m.op(use, x, nodes(m, lambda v: m.constant(v, dtype), a, b))

    def one_by_one(m, x):
        return m.op("Mul", m.op("Mul", x, m.constant(a, dtype)), m.constant(b, dtype))

    def right(m, x):
        return m.op(use, x, m.constant(folded, dtype))
    forms = [one_by_one if name == "product" and use == "Mul" and rng.random() < 0.5 else left, right]
    rng.shuffle(forms)
    return rewrite(rng, forms, shape, f"{use} by {name} {dtype}{' of vectors' if several else ''}", equal, dtype, results=shape)


# Function: (numbers, forms). Every form is the same function of the reals.
_SELECTS = {
    "LeakyRelu": ({"a": 0.1}, [
        lambda m, c, x, p: m.op("LeakyRelu", x, alpha=p["a"]),
        lambda m, c, x, p: m.op("Max", x, m.op("Mul", x, c(p["a"]))),
        lambda m, c, x, p: m.op("Where", m.op("Less", x, c(0)), m.op("Mul", c(p["a"]), x), x),
        lambda m, c, x, p: m.op("Where", m.op("Greater", x, c(0)), x, m.op("Mul", c(p["a"]), x)),
        lambda m, c, x, p: m.op("Where", m.op("GreaterOrEqual", x, c(0)), x, m.op("Mul", c(p["a"]), x)),
        lambda m, c, x, p: m.op("Sub", m.op("Relu", x), m.op("Mul", c(p["a"]), m.op("Relu", m.op("Neg", x)))),
        lambda m, c, x, p: m.op("Add", m.op("Max", x, c(0)), m.op("Mul", c(p["a"]), m.op("Min", x, c(0)))),
        lambda m, c, x, p: m.op("PRelu", x, c(p["a"])),
        lambda m, c, x, p: m.op("Mul", x, m.op("Where", m.op("Less", x, c(0)), c(p["a"]), c(1))),
    ]),
    "Abs": ({"two": 2.0}, [
        lambda m, c, x, p: m.op("Mul", c(p["two"]), m.op("Abs", x)),
        lambda m, c, x, p: m.op("Mul", c(p["two"]), m.op("Where", m.op("Less", x, c(0)), m.op("Neg", x), x)),
        lambda m, c, x, p: m.op("Where", m.op("Greater", x, c(0)), m.op("Mul", c(p["two"]), x), m.op("Mul", x, c(-p["two"]))),
        lambda m, c, x, p: m.op("Mul", c(p["two"]), m.op("Max", x, m.op("Neg", x))),
        lambda m, c, x, p: m.op("Mul", c(p["two"]), m.op("Add", m.op("Relu", x), m.op("Relu", m.op("Neg", x)))),
        lambda m, c, x, p: m.op("Mul", c(p["two"]), m.op("Sqrt", m.op("Mul", x, x))),
        lambda m, c, x, p: m.op("Mul", m.op("Mul", c(p["two"]), m.op("Sign", x)), x),
    ]),
    "Relu": ({"zero": 0.0}, [
        lambda m, c, x, p: m.op("Relu", x) if p["zero"] == 0 else m.op("Max", x, c(p["zero"])),
        lambda m, c, x, p: m.op("Where", m.op("Less", x, c(p["zero"])), c(p["zero"]), x),
        lambda m, c, x, p: m.op("Where", m.op("Greater", x, c(p["zero"])), x, c(p["zero"])),
        lambda m, c, x, p: m.op("Max", c(p["zero"]), x),
        lambda m, c, x, p: m.op("Clip", x, c(p["zero"])),
        lambda m, c, x, p: m.op("Neg", m.op("Min", m.op("Neg", x), c(-p["zero"]))),
        lambda m, c, x, p: m.op("Add", m.op("Relu", m.op("Sub", x, c(p["zero"]))), c(p["zero"])),
    ]),
    "Relu6": ({"six": 6.0}, [
        lambda m, c, x, p: m.op("Clip", x, c(0), c(p["six"])),
        lambda m, c, x, p: m.op("Min", m.op("Relu", x), c(p["six"])),
        lambda m, c, x, p: m.op("Relu", m.op("Min", c(p["six"]), x)),
        lambda m, c, x, p: m.op("Sub", m.op("Relu", x), m.op("Relu", m.op("Sub", x, c(p["six"])))),
        lambda m, c, x, p: m.op("Where", m.op("Less", x, c(p["six"])), m.op("Max", x, c(0)), c(p["six"])),
    ]),
    "Elu": ({"a": 1.0}, [
        lambda m, c, x, p: m.op("Elu", x, alpha=p["a"]),
        lambda m, c, x, p: m.op("Where", m.op("Greater", x, c(0)), x, m.op("Mul", c(p["a"]), m.op("Sub", m.op("Exp", x), c(1)))),
        lambda m, c, x, p: m.op("Where", m.op("Less", x, c(0)), m.op("Mul", m.op("Sub", m.op("Exp", x), c(1)), c(p["a"])), x),
        lambda m, c, x, p: m.op("Add", m.op("Relu", x), m.op("Mul", c(p["a"]), m.op("Sub", m.op("Exp", m.op("Min", x, c(0))), c(1)))),
        lambda m, c, x, p: m.op("Sub", m.op("Relu", x), m.op("Mul", c(p["a"]), m.op("Relu", m.op("Sub", c(1), m.op("Exp", x))))),
    ]),
    "Celu": ({"a": 1.0}, [
        lambda m, c, x, p: m.op("Celu", x, alpha=p["a"]),
        lambda m, c, x, p: m.op("Add", m.op("Max", c(0), x), m.op("Min", c(0), m.op("Mul", c(p["a"]), m.op(
            "Sub", m.op("Exp", m.op("Div", x, c(p["a"]))), c(1))))),
        lambda m, c, x, p: m.op("Mul", m.op("Elu", m.op("Div", x, c(p["a"]))), c(p["a"])),
        lambda m, c, x, p: m.op("Where", m.op("Greater", x, c(0)), x, m.op(
            "Mul", c(p["a"]), m.op("Sub", m.op("Exp", m.op("Div", x, c(p["a"]))), c(1)))),
    ]),
    "limits": ({"low": -0.5, "high": 1.25}, [
        lambda m, c, x, p: m.op("Clip", x, c(p["low"]), c(p["high"])),
        lambda m, c, x, p: m.op("Min", m.op("Max", x, c(p["low"])), c(p["high"])),
        lambda m, c, x, p: m.op("Max", c(p["low"]), m.op("Min", c(p["high"]), x)),
        lambda m, c, x, p: m.op("Where", m.op("Less", x, c(p["low"])), c(p["low"]), m.op(
            "Where", m.op("Greater", x, c(p["high"])), c(p["high"]), x)),
    ]),
}


@attack
def activations_as_selects(rng):
    """Piecewise functions as Where, Max, Min, Clip and Relu of each other."""
    what = rng.choice(sorted(_SELECTS))
    numbers, forms = _SELECTS[what]
    dtype = rng.choice(["f32", "f32", "f64", "f16"]) if what not in ("Celu",) else "f32"
    if what == "LeakyRelu" or what in ("Elu", "Celu") and rng.random() < 0.5:
        numbers = {"a": rng.choice([0.1, 0.2, 0.25, 0.01, rng.uniform(0, 1)])}
    numbers = {key: narrow(value, dtype) for key, value in numbers.items()}
    shape = [rng.randrange(1, 4) for _ in range(rng.randrange(1, 4))]
    equal = rng.random() < 0.75
    others = numbers if equal else missed(rng, numbers, dtype)
    sides = [(rng.choice(forms), numbers), (rng.choice(forms), others)]

    def make(form, values):
        return lambda m, x: form(m, lambda v: m.constant(v, dtype), x, values)
    return rewrite(rng, [make(*side) for side in sides], shape, f"{what} {dtype} {forms.index(sides[0][0])}/{forms.index(sides[1][0])}", equal,
                   dtype, results=shape)
