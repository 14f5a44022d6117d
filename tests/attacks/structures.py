"""Rewrites of structure: tiles, blocks of rows, folded batch norms, padding as a node, branches, moved elements."""
import math

import numpy
from onnx import TensorProto, helper, numpy_helper

from tests.attacks.pair import Model, Pair, attack, decorate, floats


def _pair(rng, forms, shapes, equal, what, opset=17, span=2.0, tolerance=1e-3):
    """`forms` take (model, *inputs) and yield a value of f32. `shapes`: of the inputs, by name."""
    models = Model(opset), Model(opset)
    for model, form in zip(models, forms):
        inputs = [decorate(rng, model, model.input(name, "f32", shape), shape) for name, shape in shapes.items()]
        model.output(form(model, *inputs), "f32")
    feeds = [{name: floats(rng, shape, -s, s) for name, shape in shapes.items()} for s in (span, span / 10, 3 * span)]
    return Pair(models[0].build(), models[1].build(), equal, feeds, what, tolerance=tolerance)


def _slice(model, x, begin, end, axis):
    return model.op("Slice", x, *[model.constant([v], "i64") for v in (begin, end, axis)])


def _shuffled(rng, *forms):
    forms = list(forms)
    rng.shuffle(forms)
    return forms


def _window(rng, kind, channels):
    """(operator of a window, how far its outputs see): stride 1, the extent kept."""
    kernel = rng.choice([3, 5])
    pads = [kernel // 2] * 4
    weights = numpy.array([rng.uniform(-1, 1) for _ in range(channels * channels * kernel * kernel)])
    if kind == "Conv":
        shape = [channels, channels, kernel, kernel]
        return lambda m, x: m.op("Conv", x, m.constant(weights.reshape(shape)), kernel_shape=[kernel] * 2, pads=pads), kernel // 2
    return lambda m, x: m.op(kind, x, kernel_shape=[kernel] * 2, pads=pads), kernel // 2


@attack
def tiles(rng):
    """A resized, convolved or pooled image whole against two or three tiles with overlap; a seam where it is too small."""
    kind = rng.choice(["linear", "cubic", "linear", "cubic", "nearest", "Conv", "MaxPool", "AveragePool"])
    channels, axis = rng.randrange(1, 3), rng.choice([2, 3])
    shape = [1, channels, rng.randrange(6, 9), rng.randrange(6, 9)]
    shape[axis] = rng.choice([12, 16])
    if kind in ("linear", "cubic", "nearest"):
        scale = rng.choice([2, 3, 2, 3, 1.5])
        mode = {"linear": ["half_pixel", "asymmetric", "pytorch_half_pixel"], "cubic": ["half_pixel", "asymmetric"],
                "nearest": ["asymmetric"]}[kind]
        further = {"coordinate_transformation_mode": rng.choice(mode)}
        if kind == "cubic":
            further["cubic_coeff_a"] = rng.choice([-0.75, -0.5])
        if kind == "nearest":
            further["nearest_mode"] = "floor"
        function = lambda m, x: m.op("Resize", x, "", m.constant([1, 1, scale, scale]), mode=kind, **further)
        reach = {"linear": 1, "cubic": 3, "nearest": 1}[kind]
    else:
        scale = 1
        function, reach = _window(rng, kind, channels)
    equal = rng.random() < 0.75
    margin = 2 * math.ceil(reach / 2) if equal else 0
    extent = shape[axis]
    cuts = [0, extent // 2, extent] if rng.random() < 0.5 else [0, 4, extent - 4, extent]

    def tiled(m, x):
        parts = []
        for begin, end in zip(cuts, cuts[1:]):
            first, last = max(0, begin - margin), min(extent, end + margin)
            part = function(m, _slice(m, x, first, last, axis))
            parts.append(_slice(m, part, int((begin - first) * scale), int((end - first) * scale), axis))
        return m.op("Concat", *parts, axis=axis)
    return _pair(rng, _shuffled(rng, function, tiled), {"x": shape}, equal or kind == "nearest", f"{kind} scale {scale} tiles {len(cuts) - 1}")


def _masked(m, scores, mask, how):
    if how == "where":
        return m.op("Where", m.constant(mask, "bool"), scores, m.constant(-numpy.inf))
    return m.op("Add", scores, m.constant(numpy.where(mask, 0, float(how))))


def _attend(m, q, k, v, d, mask=None, how="-inf"):
    scores = m.op("Mul", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 2, 1])), m.constant(d**-0.5))
    if mask is not None and not mask.all():
        scores = _masked(m, scores, mask, how)
    return m.op("MatMul", m.op("Softmax", scores, axis=-1), v)


def _online(m, q, k, v, d, n, block):
    """The keys in blocks, with a running maximum and a running sum."""
    top = total = result = None
    for begin in range(0, n, block):
        part = _slice(m, k, begin, begin + block, 1)
        scores = m.op("Mul", m.op("MatMul", q, m.op("Transpose", part, perm=[0, 2, 1])), m.constant(d**-0.5))
        here = m.op("ReduceMax", scores, axes=[2], keepdims=1)
        now = here if top is None else m.op("Max", top, here)
        e = m.op("Exp", m.op("Sub", scores, now))
        s = m.op("ReduceSum", e, m.constant([2], "i64"), keepdims=1)
        r = m.op("MatMul", e, _slice(m, v, begin, begin + block, 1))
        if top is not None:
            old = m.op("Exp", m.op("Sub", top, now))
            s, r = m.op("Add", m.op("Mul", total, old), s), m.op("Add", m.op("Mul", result, old), r)
        top, total, result = now, s, r
    return m.op("Div", result, total)


@attack
def blocks_of_rows(rng):
    """Attention of 16 positions against blocks of 4: causal ones that leave out what is masked, or keys by a running maximum."""
    n, block, d, heads = 16, 4, rng.choice([4, 8]), rng.randrange(1, 3)
    kind = rng.choice(["causal", "causal", "window", "all", "online"])
    how = rng.choice(["-inf", "-inf", "where", "where", "-1e9"])
    equal = rng.random() < 0.75
    large = how == "-1e9" and kind in ("causal", "window")  # a score of 1e10 beats that mask
    at = numpy.arange(n)
    mask = numpy.ones([n, n], bool) if kind in ("all", "online") else at[None, :] <= at[:, None]
    if kind == "window":
        mask &= at[None, :] > at[:, None] - 6
    other = mask.copy()
    if not equal:
        row = rng.randrange(1, n)
        other[row, row if kind != "window" else max(0, row - 5)] = False

    def whole(m, q, k, v):
        return _attend(m, q, k, v, d, mask, how)

    def blocks(m, q, k, v):
        if kind == "online":
            return _online(m, q, k, v, d if equal else 4 * d, n, block)
        parts = []
        for begin in range(0, n, block):
            rows = other[begin:begin + block]
            columns = numpy.flatnonzero(rows.any(0))
            first, last = int(columns[0]), int(columns[-1]) + 1
            parts.append(_attend(m, _slice(m, q, begin, begin + block, 1), _slice(m, k, first, last, 1), _slice(m, v, first, last, 1),
                                 d, rows[:, first:last], how))
        return m.op("Concat", *parts, axis=1)
    shapes = {name: [heads, n, d] for name in "qkv"}
    pair = _pair(rng, _shuffled(rng, whole, blocks), shapes, equal and not large, f"{kind} by {how}", tolerance=1e-2)
    if large:
        pair.feeds += [{name: floats(rng, shape, -s, s) for name, shape in shapes.items()} for s in (3e4, 1e5, 1e6)]
    return pair


@attack
def attention_scales(rng):
    """1 / sqrt(d) on the scores, on one operand, or its root on both."""
    d, n, keys = rng.choice([16, 32, 40, 48, 64, 80]), rng.randrange(2, 5), rng.randrange(2, 6)
    lead = [rng.randrange(1, 3) for _ in range(rng.randrange(1, 3))]
    rank = len(lead) + 2
    perm = list(range(rank - 2)) + [rank - 1, rank - 2]
    equal = rng.random() < 0.75
    mask = numpy.array([[rng.uniform(-1, 1) for _ in range(keys)] for _ in range(n)]) if rng.random() < 0.5 else None

    def form(place, factor):
        def make(m, q, k, v):
            c = m.constant
            if place in ("q", "both"):
                q = m.op("Mul", q, c(factor * d**(-0.5 if place == "q" else -0.25)))
            if place == "root q":
                q = m.op("Div", q, c(d**0.5 / factor))
            k = m.op("Transpose", k, perm=perm)
            if place in ("k", "both"):
                k = m.op("Mul", k, c(d**(-0.25) if place == "both" else factor * d**-0.5))
            if place == "both roots":
                q, k = (m.op("Mul", t, m.op("Sqrt", c(f * d**-0.5))) for t, f in ((q, factor**2), (k, 1)))
            s = m.op("MatMul", q, k)
            if place == "scores":
                s = m.op("Mul", s, c(factor * d**-0.5))
            elif place == "divided":
                s = m.op("Div", s, c(d**0.5 / factor))
            elif place == "nodes":
                s = m.op("Div", s, m.op("Mul", m.op("Sqrt", c(d)), c(1 / factor)) if factor != 1 else m.op("Sqrt", c(d)))
            s = m.op("Add", s, c(mask)) if mask is not None else s
            return m.op("MatMul", m.op("Softmax", s, axis=-1), v)
        return make
    places = ["scores", "divided", "nodes", "q", "k", "root q", "both", "both roots"]
    first, second = rng.choice(places), rng.choice(places)
    shapes = {"q": lead + [n, d], "k": lead + [keys, d], "v": lead + [keys, 3]}
    return _pair(rng, [form(first, 1), form(second, 1 if equal else 1.5)], shapes, equal, f"{first} / {second}", tolerance=1e-2)


@attack
def folded_batch_norms(rng):
    """A batch norm behind a product, folded in float32 into its weights and bias."""
    kind = rng.choice(["Conv", "Conv", "ConvTranspose", "MatMul", "Gemm", "before"])
    r = numpy.random.default_rng(rng.randrange(2**30))
    group = rng.choice([1, 2])
    inside, outside = 4, 6
    weights = {"Conv": [outside, inside // group, 3, 3], "before": [outside, inside, 1, 1], "ConvTranspose": [inside, outside // group, 3, 3],
               "MatMul": [inside, outside], "Gemm": [outside, inside]}[kind]
    w = r.normal(size=weights).astype("f4")
    bias = r.normal(size=outside).astype("f4") if kind != "MatMul" and rng.random() < 0.5 else None
    channels = inside if kind == "before" else outside
    scale, shift, mean = (r.normal(size=channels).astype("f4") for _ in range(3))
    var = r.uniform(0.3, 2, channels).astype("f4")
    equal = rng.random() < 0.75
    eps = rng.choice([1e-5, 1e-3])
    attributes = {"Conv": {"kernel_shape": [3, 3], "pads": [1] * 4, "group": group}, "before": {},
                  "ConvTranspose": {"kernel_shape": [3, 3], "group": group}, "MatMul": {}, "Gemm": {"transB": 1}}[kind]
    operator = "Conv" if kind == "before" else kind

    def norm(m, y):
        return m.op("BatchNormalization", y, *[m.constant(t) for t in (scale, shift, mean, var)], epsilon=eps)

    def product(m, x, w, b):
        if operator == "MatMul":
            y = m.op("MatMul", x, m.constant(w))
            return m.op("Add", y, m.constant(b)) if b is not None else y
        return m.op(operator, x, m.constant(w), *([m.constant(b)] if b is not None else []), **attributes)

    def apart(m, x):
        return product(m, norm(m, x), w, bias) if kind == "before" else norm(m, product(m, x, w, bias))

    def folded(m, x):
        factor = scale / numpy.sqrt(var + numpy.float32(eps))
        if not equal:
            factor[rng.randrange(channels)] *= 1.5
        rest = shift - mean * factor
        old = bias if bias is not None else numpy.zeros(outside, "f4")
        if kind == "before":
            return product(m, x, w * factor[None, :, None, None], old + (w[:, :, 0, 0] * rest).sum(1))
        if kind == "ConvTranspose":
            by_group = factor.reshape(group, 1, -1, 1, 1)
            v = (w.reshape(group, inside // group, -1, 3, 3) * by_group).reshape(w.shape)
        else:
            v = w * (factor if kind == "MatMul" else factor.reshape([-1] + [1] * (w.ndim - 1)))
        return product(m, x, v, old * factor + rest)
    shape = [2, inside] + ([5, 6] if operator.startswith("Conv") else [])
    forms = _shuffled(rng, apart, folded)
    return _pair(rng, forms, {"x": shape}, equal, f"{kind} {'with' if bias is not None else 'without'} bias", tolerance=1e-2)


@attack
def padding_as_a_node(rng):
    """The padding of a pool or a convolution as Pad before it."""
    kind = rng.choice(["MaxPool", "MaxPool", "AveragePool", "Conv"])
    kernel, stride, dilation = rng.choice([2, 3]), rng.choice([1, 2]), rng.choice([1, 1, 2]) if kind != "AveragePool" else 1
    height = rng.randrange(6, 9)
    same = rng.random() < 0.2
    reach = (kernel - 1) * dilation
    if same:
        total = max(0, (math.ceil(height / stride) - 1) * stride + reach + 1 - height)
        pads = [total // 2] * 2 + [total - total // 2] * 2
    else:
        pads = [rng.randrange(0, kernel) for _ in range(4)]
    weights = numpy.array([rng.uniform(-1, 1) for _ in range(2 * 2 * kernel * kernel)]).reshape(2, 2, kernel, kernel)
    further = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, **({"dilations": [dilation] * 2} if kind != "AveragePool" else {}),
               **({"count_include_pad": 1} if kind == "AveragePool" else {})}
    pools = kind == "MaxPool"
    lowest = float(numpy.finfo(numpy.float32).min)
    filler = rng.choice([-numpy.inf, -numpy.inf, lowest]) if pools else 0.0
    equal = rng.random() < 0.75
    if not equal:
        filler = 0.0 if pools else 1.0

    def operator(m, x, **attributes):
        return m.op(kind, x, *([m.constant(weights)] if kind == "Conv" else []), **further, **attributes)

    def inside(m, x):
        return operator(m, x, **({"auto_pad": "SAME_UPPER"} if same else {"pads": pads}))

    def as_node(m, x):
        return operator(m, m.op("Pad", x, m.constant([0, 0, *pads[:2], 0, 0, *pads[2:]], "i64"), m.constant(filler)))
    what = f"{kind} filled with {'the lowest float' if filler == lowest else filler}"
    forms = _shuffled(rng, inside, as_node)
    return _pair(rng, forms, {"x": [1, 2, height, height]}, equal or not any(pads), what)


def _branch(name, values, order):
    """x w0 + w1, with its initializers in this order."""
    tensors = [numpy_helper.from_array(numpy.asarray(v, numpy.float32), f"w{k}") for k, v in enumerate(values)]
    nodes = [helper.make_node("Mul", ["x", "w0"], [f"{name}_t"]), helper.make_node("Add", [f"{name}_t", "w1"], [f"{name}_y"])]
    output = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
    return helper.make_graph(nodes, name, [], [output], [tensors[k] for k in order])


@attack
def constant_branches(rng):
    """If with a constant condition: initializers of one name in both branches, in any order; or the taken branch alone."""
    n = rng.randrange(1, 4)
    taken, other, third = ([[rng.uniform(1, 3) for _ in range(n)] for _ in range(2)] for _ in range(3))
    equal = rng.random() < 0.75
    condition = rng.random() < 0.5
    inlined, computed = rng.random() < 0.5, rng.random() < 0.5
    models = Model(), Model()
    for k, m in enumerate(models):
        x = m.input("x", "f32", [n])
        values = taken if equal or not k else other
        if k and inlined:
            y = m.op("Add", m.op("Mul", x, m.constant(values[0])), m.constant(values[1]))
        else:
            branches = [_branch("yes", values, rng.sample([0, 1], 2)), _branch("no", [other, third][k], rng.sample([0, 1], 2))]
            if not condition:
                branches = [_branch("yes", [other, third][k], rng.sample([0, 1], 2)), _branch("no", values, rng.sample([0, 1], 2))]
            c = m.constant(condition, "bool")
            if computed:
                c = m.op("Not", m.constant(not condition, "bool"))
            elif rng.random() < 0.3:
                c = m.op("Equal", m.op("Size", x), m.constant(n if condition else n + 1, "i64"))
            y = m.op("If", c, then_branch=branches[0], else_branch=branches[1])
        m.output(y, "f32")
    feeds = [{"x": floats(rng, [n])} for _ in range(2)]
    return Pair(models[0].build(), models[1].build(), equal, feeds, "one inlined" if inlined else "both with branches")


def _moved(m, x, to, perm, back):
    shape = lambda v: m.constant(v, "i64")
    return m.op("Reshape", m.op("Transpose", m.op("Reshape", x, shape(to)), perm=perm), shape(back))


@attack
def moved_elements(rng):
    """DepthToSpace, shuffles, tiles and reversals against reshapes, transposes and gathers."""
    n, b, c, h, w = rng.randrange(1, 3), rng.choice([2, 3]), rng.randrange(1, 4), rng.randrange(2, 4), rng.randrange(2, 5)
    kind = rng.choice(["DCR", "CRD", "SpaceToDepth", "shuffle", "tile", "reverse", "repeat"])
    equal = rng.random() < 0.75
    deep, wide = [n, c * b * b, h, w], [n, c, h * b, w * b]
    space = {"DCR": ([n, b, b, c, h, w], [0, 3, 4, 1, 5, 2]), "CRD": ([n, c, b, b, h, w], [0, 1, 4, 2, 5, 3])}
    if kind in space:
        shape, other = deep, kind if equal else "CRD" if kind == "DCR" else "DCR"
        first = lambda m, x: m.op("DepthToSpace", x, blocksize=b, mode=kind)
        second = lambda m, x: _moved(m, x, *space[other], wide)
        equal = equal or c == 1
    elif kind == "SpaceToDepth":
        shape = wide
        first = lambda m, x: m.op("SpaceToDepth", x, blocksize=b)
        second = lambda m, x: _moved(m, x, [n, c, h, b, w, b], [0, 3, 5, 1, 2, 4] if equal else [0, 5, 3, 1, 2, 4], deep)
    elif kind == "shuffle":
        shape = [n, b * 4, h, w]
        order = numpy.arange(4 * b).reshape(b, 4).T.reshape(-1)
        if not equal:
            order = numpy.roll(order, 1)
        first = lambda m, x: _moved(m, x, [n, b, 4, h, w], [0, 2, 1, 3, 4], shape)
        second = lambda m, x: m.op("Gather", x, m.constant(order - (4 * b if n == 1 else 0), "i64"), axis=1)
    elif kind == "tile":
        shape = [n, c, w]
        first = lambda m, x: m.op("Tile", x, m.constant([1, 1, b], "i64"))
        second = lambda m, x: m.op("Concat", *[x] * (b - 1), x if equal else m.op("Relu", x), axis=2)
    elif kind == "reverse":
        shape = [n, c, w + 1]
        first = lambda m, x: m.op("Slice", x, *[m.constant([v], "i64") for v in (-1, -2**63, 2, -1)])
        second = lambda m, x: m.op("Gather", x, m.constant(numpy.arange(w + 1)[::-1 if equal else 1], "i64"), axis=2)
    else:
        shape = [n, c, h, w]
        grown = [n, c, h * b, w]
        first = lambda m, x: m.op("Resize", x, "", m.constant([1, 1, b, 1]), mode="nearest", nearest_mode="floor",
                                  coordinate_transformation_mode="asymmetric")
        second = lambda m, x: m.op("Reshape", m.op("Expand", m.op("Unsqueeze", x, m.constant([3 if equal else 2], "i64")), m.constant(
            [n, c, h, b, w] if equal else [n, c, b, h, w], "i64")), m.constant(grown, "i64"))
    return _pair(rng, _shuffled(rng, first, second), {"x": shape}, equal, kind)
