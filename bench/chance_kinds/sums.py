"""Sums of linear layers, and products of which another order needs less."""
import math

from chance_kinds.registry import kind


@kind(dict(d=512, rows=128, terms=2), dict(d=256, rows=256, terms=4), dict(d=512, rows=1, terms=3),
      dict(d=384, rows=128, terms=2, signs=True), dict(d=384, rows=128, terms=3, context="within"), dict(c=64, n=28, terms=2),
      dict(c=64, n=28, terms=3, stride=2), dict(c=96, n=28, terms=2, group=4), dict(d=384, rows=64, terms=2, context="double"))
def sum_of_layers(net, terms, d=0, rows=0, c=0, n=0, stride=1, group=1, signs=False):
    """Linear layers of one input, summed: one layer of the summed weights."""
    def total(values):
        return net.op("Sub", values[0], values[1]) if signs else net.add(*values)
    if d:
        x, weights = net.input(1, rows, d), [net.matrix(f"w{k}", d, d) for k in range(terms)]
        return net.end(net.matmul(x, total(weights)) if net.expert else total([net.matmul(x, w) for w in weights]), width=d)
    x, weights = net.image(1, c, n, n), [net.weight(f"w{k}", c, c // group, 3, 3) for k in range(terms)]
    if net.expert:
        return net.end(net.conv_of([3, 3], x, total(weights), stride=stride, group=group), channels=c)
    return net.end(total([net.conv(x, w, stride=stride, group=group) for w in weights]), channels=c)


@kind(dict(d=512, rows=128, terms=2), dict(d=384, rows=128, terms=3), dict(d=512, rows=1, terms=2, context="within"),
      dict(c=64, n=28, terms=2), dict(c=32, n=56, terms=3), dict(c=64, n=28, terms=2, context="after"))
def sum_of_inputs(net, terms, d=0, rows=0, c=0, n=0):
    """One linear layer of several inputs, summed: the layer of the sum."""
    if d:
        w, xs = net.matrix("w", d, d), [net.input(1, rows, d) for _ in range(terms)]
        return net.end(net.matmul(net.add(*xs), w) if net.expert else net.add(*(net.matmul(x, w) for x in xs)), width=d)
    w, xs = net.weight("w", c, c, 3, 3), [net.image(1, c, n, n) for _ in range(terms)]
    return net.end(net.conv(net.add(*xs), w) if net.expert else net.add(*(net.conv(x, w) for x in xs)), channels=c)


@kind(dict(d=256, rows=128, copies=2), dict(d=192, rows=128, copies=4), dict(c=48, n=28, copies=2),
      dict(c=32, n=28, copies=3, context="after"))
def concatenated_copies(net, copies, d=0, rows=0, c=0, n=0):
    """A linear layer of copies of its input, concatenated: slices of the weight summed."""
    if d:
        x, w = net.input(1, rows, d), net.matrix("w", copies * d, d)
        if not net.expert:
            return net.end(net.matmul(net.concat(2, *[x] * copies), w), width=d)
        return net.end(net.matmul(x, net.add(*net.split(w, 0, [d] * copies))), width=d)
    x, w = net.image(1, c, n, n), net.weight("w", c, copies * c, 3, 3)
    if not net.expert:
        return net.end(net.conv(net.concat(1, *[x] * copies), w), channels=c)
    return net.end(net.conv_of([3, 3], x, net.add(*net.split(w, 1, [c] * copies))), channels=c)


@kind(dict(shapes=(1, 512, 512, 512)), dict(shapes=(512, 512, 512, 1), order="left"), dict(shapes=(64, 512, 16, 512), order="right"),
      dict(shapes=(1, 256, 256, 256, 256)), dict(shapes=(8, 384, 384, 384, 384)), dict(shapes=(512, 8, 512, 8, 512, 8), order="left"),
      dict(shapes=(128, 256, 32, 256, 128), order="right"), dict(shapes=(1, 384, 384, 384), context="after"),
      dict(shapes=(4, 256, 256, 256), batch=4), dict(shapes=(1, 256, 256, 256), context="double"))
def matrix_chain(net, shapes, order="right", batch=0):
    """A product of three to five matrices that are inputs, from the right or from the left: another order needs less."""
    xs = [net.input(*([batch] if batch else []), a, b) for a, b in zip(shapes, shapes[1:])]

    def best(i, j):
        """(multiplications, where the chain from i to j is split)."""
        if i == j:
            return 0, i
        return min((best(i, k)[0] + best(k + 1, j)[0] + math.prod((shapes[i], shapes[k + 1], shapes[j + 1])), k) for k in range(i, j))

    def product(i, j):
        k = best(i, j)[1] if net.expert else (i if order == "right" else j - 1)
        return xs[i] if i == j else net.matmul(product(i, k), product(k + 1, j))
    return net.end(product(0, len(xs) - 1), width=shapes[-1])
