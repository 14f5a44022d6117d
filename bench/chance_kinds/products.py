"""Products by known tensors, sums that move through linear layers, squares of differences."""
import numpy

from chance_kinds.registry import kind


@kind(dict(rows=512, codes=512, d=64), dict(rows=196, codes=1024, d=32), dict(rows=64, codes=256, d=128, form="power"),
      dict(rows=256, codes=512, d=32, form="square"), dict(rows=512, codes=256, d=64, flipped=True),
      dict(rows=256, codes=256, d=64, inputs=True), dict(rows=256, codes=512, d=64, context="after"),
      dict(rows=128, codes=256, d=64, context="double"))
def squared_distances(net, rows, codes, d, form="product", flipped=False, inputs=False):
    """Squared distances to a codebook (VQ-VAE, k-means): squared norms and one product."""
    x = net.input(rows, 1, d)
    c = net.input(1, codes, d) if inputs else net.weight("codes", 1, codes, d, scale=1.0)
    if not net.expert:
        e = net.op("Sub", *((c, x) if flipped else (x, c)))
        if form == "square":
            return net.end(net.op("ReduceSumSquare", e, axes=[2], keepdims=0))
        return net.end(net.sum(net.op("Pow", e, net.scalar(2.0)) if form == "power" else net.op("Mul", e, e), 2, keep=0))
    x, c = net.reshape(x, rows, d), net.reshape(c, codes, d)
    product = net.matmul(x, net.transpose(c, 1, 0))
    squares = [net.op("ReduceSumSquare", one, axes=[1], keepdims=1) for one in (x, c)]
    return net.end(net.add(net.op("Sub", squares[0], net.op("Mul", product, net.scalar(2.0))), net.transpose(squares[1], 1, 0)))


def ones(shape_of, n, size):
    i, j = numpy.indices((n, n))
    return {"lower": j <= i, "upper": j >= i, "strict": j < i, "band": abs(i - j) <= size, "blocks": i // max(1, size) == j // max(1, size),
            "first": j < size, "all": j >= 0, "reversed": i + j == n - 1, "shifted": i == j + size}[shape_of].astype(numpy.float32)


@kind(dict(form="lower", n=512, d=512), dict(form="upper", n=512, d=256), dict(form="strict", n=256, d=512),
      dict(form="band", n=512, d=256, size=4), dict(form="blocks", n=512, d=256, size=16), dict(form="all", n=512, d=512),
      dict(form="first", n=512, d=256, size=32), dict(form="reversed", n=512, d=256), dict(form="shifted", n=256, d=512, size=8),
      dict(form="lower", n=256, d=256, context="within"), dict(form="lower", n=512, d=128, right=True),
      dict(form="blocks", n=256, d=256, size=8, right=True), dict(form="lower", n=256, d=256, context="double"))
def products_of_ones(net, form, n, d, size=0, right=False):
    """A product with a known matrix of zeros and ones: running, moving and group sums, reversals, shifts."""
    x, known, axis = net.input(1, *((d, n) if right else (n, d))), ones(form, n, size), 2 if right else 1
    width = n if right else d
    if not net.expert:
        known = net.constant((known.T if right else known)[None])
        return net.end(net.matmul(x, known) if right else net.matmul(known, x), width=width)

    def total(value, at, shape):
        return net.expand(net.sum(value, at), *shape)
    whole = (1, d, n) if right else (1, n, d)
    if form in ("lower", "upper", "strict"):
        y = net.op("CumSum", x, net.constant(axis), exclusive=int(form == "strict"), reverse=int(form == "upper"))
    elif form in ("all", "first"):
        y = total(net.slice(x, [axis], [0], [size]) if form == "first" else x, axis, whole)
    elif form == "blocks":
        cut = (1, d, n // size, size) if right else (1, n // size, size, d)
        y = net.reshape(total(net.reshape(x, *cut), 3 if right else 2, cut), *whole)
    elif form == "band":
        window = net.pool("Average", net.transpose(x, 0, 2, 1), 2 * size + 1, 1, dims=1, pad=size, count_include_pad=1)
        y = net.op("Mul", net.transpose(window, 0, 2, 1), net.scalar(2 * size + 1))
    elif form == "shifted":
        y = net.op("Pad", net.slice(x, [axis], [0], [n - size]), net.constant([0, size, 0, 0, 0, 0]))
    else:
        y = net.slice(x, [axis], [-1], [-n - 1], [-1])
    return net.end(y, width=width)


@kind(dict(blocks=4, d=512, rows=128), dict(blocks=8, d=512, rows=256), dict(blocks=2, d=512, rows=64, context="within"),
      dict(blocks=4, c=64, n=28), dict(blocks=8, c=128, n=14, context="after"))
def block_diagonal(net, blocks, d=0, rows=0, c=0, n=0):
    """A dense layer whose weight is zero outside diagonal blocks: groups."""
    if c:
        x, w = net.image(1, c, n, n), net.weight("w", c, c // blocks, 3, 3)
        if net.expert:
            return net.end(net.conv(x, w, group=blocks), channels=c)
        dense = numpy.zeros((blocks, c // blocks, blocks, c // blocks, 3, 3), numpy.float32)
        for k, part in enumerate(numpy.split(net.constants.pop(w), blocks)):
            dense[k, :, k] = part
        return net.end(net.conv(x, net.constant(dense.reshape(c, c, 3, 3), f"dense.{net.part}")), channels=c)
    x, w, size = net.input(1, rows, d), net.weight("w", blocks, d // blocks, d // blocks), d // blocks
    if net.expert:
        parts = net.transpose(net.reshape(x, rows, blocks, size), 1, 0, 2)
        return net.end(net.reshape(net.transpose(net.matmul(parts, w), 1, 0, 2), 1, rows, d), width=d)
    dense = numpy.zeros((blocks, size, blocks, size), numpy.float32)
    for k, part in enumerate(net.constants.pop(w)):
        dense[k, :, k] = part
    return net.end(net.matmul(x, net.constant(dense.reshape(d, d), f"dense.{net.part}")), width=d)


@kind(dict(d=256, rows=256, out=256), dict(d=256, rows=256, out=256, bias=True), dict(d=256, rows=196, out=768, layers=2, bias=True),
      dict(c=128, n=28, out=256), dict(c=64, n=28, out=128, layers=2, bias=True), dict(d=256, rows=256, out=512, sum=True),
      dict(d=256, rows=196, out=256, bias=True, batch=4, context="within"), dict(c=128, n=14, out=512, batch=4, bias=True),
      dict(d=256, rows=128, out=512, bias=True, context="double"))
def mean_after_layer(net, out, d=0, rows=0, c=0, n=0, layers=1, bias=False, sum=False, batch=1):
    """Linear layers, then the mean over positions: the mean first."""
    x = net.input(batch, rows, d) if d else net.image(batch, c, n, n)

    def pooled(value):
        if d:
            return (net.sum if sum else net.mean)(value, 1)
        return net.op("GlobalAveragePool", value)
    x = pooled(x) if net.expert else x
    for k, (a, b) in enumerate(zip([d or c] + [out] * layers, [out] * layers)):
        shift = net.bias(f"b{k}", b) if bias else None
        x = net.linear(x, net.matrix(f"w{k}", a, b), shift) if d else net.conv(x, net.weight(f"w{k}", b, a, 1, 1), shift)
    return net.end(x if net.expert else pooled(x), width=out if d else 0)


@kind(dict(c=128, n=28, out=64), dict(c=64, n=56, out=32, bias=True), dict(c=128, n=28, out=128, size=4),
      dict(d=256, rows=256, out=256, size=4), dict(c=96, n=28, out=96, group=4), dict(c=128, n=28, out=64, bias=True, context="within"),
      dict(d=256, rows=256, out=256, size=2, bias=True, context="double"), dict(c=64, n=28, out=64, dims=1, size=2, batch=16))
def pool_after_projection(net, out, c=0, n=0, d=0, rows=0, size=2, group=1, bias=False, dims=2, batch=1):
    """A 1 x 1 projection, then average pooling (DenseNet's transitions, token merging): pooling first."""
    b = net.bias("b", out) if bias else None
    if d:
        x, w = net.input(1, rows, d), net.matrix("w", d, out)

        def pooled(value, width):
            return net.mean(net.reshape(value, 1, rows // size, size, width), 2, keep=0)
        return net.end(net.linear(pooled(x, d), w, b) if net.expert else pooled(net.linear(x, w, b), out), width=out)
    x, w = net.image(batch, c, *[n] * dims), net.weight("w", out, c // group, *[1] * dims)
    if net.expert:
        return net.end(net.conv(net.pool("Average", x, size, size, dims), w, b, group=group), channels=out, dims=dims)
    return net.end(net.pool("Average", net.conv(x, w, b, group=group), size, size, dims), channels=out, dims=dims)


@kind(dict(c=64, n=112, first=2, second=2), dict(c=64, n=112, first=2, second=2, pool="Max"), dict(c=32, n=108, first=3, second=2),
      dict(c=64, n=56, conv=3, second=2), dict(c=32, n=57, conv=3, second=3, bias=True), dict(c=64, n=56, conv=5, second=2),
      dict(c=64, n=56, first=2, second=2, context="within"), dict(c=48, n=32, conv=3, second=2, batch=4, context="before"),
      dict(c=64, n=56, first=2, second=2, context="double"))
def merged_pools(net, c, n, second, first=0, conv=0, pool="Average", bias=False, batch=1):
    """A pool or a convolution without padding, then a pool: one larger window."""
    x = net.image(batch, c, n, n)
    if first:
        if net.expert:
            return net.end(net.pool(pool, x, first * second, first * second), channels=c)
        return net.end(net.pool(pool, net.pool(pool, x, first, first), second, second), channels=c)
    w, b = net.weight("w", c, c, conv, conv), net.bias("b", c) if bias else None
    if not net.expert:
        return net.end(net.pool("Average", net.conv(x, w, b, pads=[(0, 0)] * 2), second, second), channels=c)
    margins = [(i, second - 1 - i, j, second - 1 - j) for i in range(second) for j in range(second)]
    total = net.add(*(net.op("Pad", w, net.constant([0, 0, i, j, 0, 0, k, m])) for i, k, j, m in margins))
    mean = net.op("Div", total, net.scalar(second * second))
    return net.end(net.conv_of([conv + second - 1] * 2, x, mean, b, pads=[(0, 0)] * 2, stride=second), channels=c)
