"""Recurrences that stay loops: written otherwise, in parts, reversed, one step shorter, with one weight changed."""
import numpy

from tests.attacks.pair import Model, Pair, attack, floats

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _apply(model, kind, x, weights, hidden, states, **attributes):
    """All states of all steps, and the last ones."""
    w, r, b = (model.constant(weight) for weight in weights)
    outputs = 3 if kind == "LSTM" else 2
    every, *last = model.op(kind, x, w, r, b, "", *states, outputs=outputs, hidden_size=hidden, **attributes)
    return every, last


def _reversed(model, x, axis=0):
    ends = [model.constant([v], "i64") for v in (-1, -2**31, axis, -1)]
    return model.op("Slice", x, *ends)


def _plain(model, kind, x, weights, hidden, steps, cut):
    return _apply(model, kind, x, weights, hidden, [])[0]


def _with_states(model, kind, x, weights, hidden, steps, cut):
    zeros = [model.constant(numpy.zeros([1, 1, hidden])) for _ in range(2 if kind == "LSTM" else 1)]
    return _apply(model, kind, x, weights, hidden, zeros)[0]


def _in_parts(model, kind, x, weights, hidden, steps, cut):
    parts = model.op("Split", x, model.constant([cut, steps - cut], "i64"), outputs=2, axis=0)
    first, last = _apply(model, kind, parts[0], weights, hidden, [])
    return model.op("Concat", first, _apply(model, kind, parts[1], weights, hidden, last)[0], axis=0)


def _backwards(model, kind, x, weights, hidden, steps, cut):
    every, _ = _apply(model, kind, _reversed(model, x), weights, hidden, [], direction="reverse")
    return _reversed(model, every)


def _direction(model, kind, x, weights, hidden, steps, cut):
    return _apply(model, kind, x, weights, hidden, [], direction="reverse")[0]


def _changed(model, kind, x, weights, hidden, steps, cut):
    r = weights[1].copy()
    r.flat[cut % r.size] += 0.5
    return _plain(model, kind, x, [weights[0], r, weights[2]], hidden, steps, cut)


def _forgets(model, kind, x, weights, hidden, steps, cut):
    """The second part starts anew."""
    parts = model.op("Split", x, model.constant([cut, steps - cut], "i64"), outputs=2, axis=0)
    return model.op("Concat", *[_plain(model, kind, part, weights, hidden, 0, 0) for part in parts], axis=0)


def _shifted(model, kind, x, weights, hidden, steps, cut):
    """State k in place of state k + 1."""
    every = _plain(model, kind, x, weights, hidden, steps, cut)
    bounds = [model.constant([v], "i64") for v in (0, steps - 1, 0)]
    start = model.constant(numpy.zeros([1, 1, 1, hidden]))
    return model.op("Concat", start, model.op("Slice", every, *bounds), axis=0)


_EQUAL = {"plain": _plain, "zero states": _with_states, "in parts": _in_parts, "backwards": _backwards}
_OTHER = {"direction": _direction, "weight": _changed, "forgets": _forgets, "shifted": _shifted}


@attack
def recurrences(rng):
    """At most 64 steps are unrolled, more are a loop."""
    kind = rng.choice(sorted(_GATES))
    steps, hidden, width = rng.choice([3, 64, 65, 70]), rng.randrange(1, 4), rng.randrange(1, 3)
    cut = rng.choice([1, steps // 2, steps - 1]) if steps != 70 else 66
    gates = _GATES[kind] * hidden
    weights = [floats(rng, [1, gates, size], -1, 1) for size in (width, hidden)] + [floats(rng, [1, 2 * gates], -1, 1)]
    equal = rng.random() < 0.5
    forms = [rng.choice(sorted(_EQUAL)), rng.choice(sorted(_EQUAL if equal else _OTHER))]
    a, b = Model(), Model()
    for model, form in ((a, forms[0]), (b, forms[1])):
        x = model.input("x", "f32", [steps, 1, width])
        model.output((_EQUAL | _OTHER)[form](model, kind, x, weights, hidden, steps, cut), "f32")
    pair = Pair(a.build(), b.build(), equal, [{"x": floats(rng, [steps, 1, width])} for _ in range(2)],
                f"{kind} of {steps} steps, {forms[0]} / {forms[1]}", tolerance=1e-4)
    pair.options = ["--weights", "exact"]
    return pair
