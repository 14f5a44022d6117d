"""Attention of which parts are masked, or whose products have a cheaper order."""
import numpy

from chance_kinds.registry import kind


def allowed(mask, rows, size):
    """Whether a query (row) reads a key (column)."""
    i, j = numpy.indices((rows, rows))
    return {"causal": j <= i, "block": i // max(1, size) == j // max(1, size), "window": abs(i - j) <= size,
            "prefix": (j <= i) | (j < size), "causal_window": (j <= i) & (i - j < size)}[mask]


@kind(dict(mask="causal", rows=512, heads=4), dict(mask="causal", rows=256, heads=4, where=True),
      dict(mask="block", rows=512, size=128, heads=4), dict(mask="block", rows=256, size=64, heads=2, where=True),
      dict(mask="window", rows=512, size=64, heads=4), dict(mask="causal_window", rows=512, size=64, heads=2),
      dict(mask="prefix", rows=512, size=128, heads=2), dict(mask="causal", rows=256, heads=4, scaled=True, context="within"),
      dict(mask="block", rows=256, size=64, heads=4, scaled=True, batch=2), dict(mask="causal", rows=256, heads=2, context="double"),
      dict(mask="causal", rows=512, heads=2, dropped=True))
def masked_attention(net, mask, rows, heads, size=0, where=False, scaled=False, batch=1, width=64, dropped=False):
    """Attention with a constant mask of -inf: blocks of queries with the keys that they read."""
    q, k, v = (net.input(batch, heads, rows, width) for _ in range(3))
    keys = net.transpose(k, 0, 1, 3, 2)
    seen = allowed(mask, rows, size)

    def attend(q, keys, v, seen):
        scores = net.matmul(q, keys)
        scores = net.op("Mul", scores, net.scalar(width ** -0.5)) if scaled else scores
        if where:
            scores = net.op("Where", net.constant(seen[None, None]), scores, net.scalar(-numpy.inf))
        elif not seen.all():
            scores = net.add(scores, net.constant(numpy.where(seen, 0, -numpy.inf).astype(numpy.float32)[None, None]))
        return net.matmul(net.op("Softmax", scores, axis=-1), v)
    if not net.expert:
        y = attend(q, keys, v, seen)
        return net.end(net.slice(y, [2], [0], [rows // 2]) if dropped else y, width=width)
    block = 64 if rows <= 256 else 128
    parts = []
    for begin in range(0, rows // 2 if dropped else rows, block):
        own = seen[begin:begin + block]
        read = numpy.flatnonzero(own.any(axis=0))
        low, high = int(read[0]), int(read[-1]) + 1
        queries, values = net.slice(q, [2], [begin], [begin + block]), net.slice(v, [2], [low], [high])
        parts.append(attend(queries, net.slice(keys, [3], [low], [high]), values, own[:, low:high]))
    return net.end(net.concat(2, *parts), width=width)


@kind(dict(rows=1024, width=32, heads=4), dict(rows=512, width=64, heads=4), dict(rows=1024, width=32, heads=2, normalized=True),
      dict(rows=512, width=32, heads=4, map="elu"), dict(rows=512, width=32, heads=4, map="elu", normalized=True, context="within"),
      dict(rows=512, width=32, heads=2, batch=2, context="double"), dict(rows=1024, width=32, heads=1, map="softmax"))
def linear_attention(net, rows, width, heads, map="relu", normalized=False, batch=1):
    """(f(q) f(k)') v with more positions than channels: f(q) (f(k)' v)."""
    q, k, v = (net.input(batch, heads, rows, width) for _ in range(3))

    def feature(x):
        if map == "softmax":
            return net.op("Softmax", x, axis=-1)
        return net.relu(x) if map == "relu" else net.op("Add", net.op("Elu", x, alpha=1.0), net.scalar(1.0))
    q, kt = feature(q), net.transpose(feature(k), 0, 1, 3, 2)
    if not net.expert:
        scores = net.matmul(q, kt)
        y = net.matmul(scores, v)
        return net.end(net.op("Div", y, net.op("Add", net.sum(scores, 3), net.scalar(1.0))) if normalized else y, width=width)
    y = net.matmul(q, net.matmul(kt, v))
    if normalized:
        y = net.op("Div", y, net.op("Add", net.matmul(q, net.sum(kt, 3)), net.scalar(1.0)))
    return net.end(y, width=width)
