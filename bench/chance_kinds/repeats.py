"""Values that repeat along an axis, or that equal other values."""
import numpy

from chance_kinds.registry import kind
from chance_kinds.weights import sums_of


def nearest(net, x, scale, dims, extents=None):
    """Nearest resizing by an integer, given as scales or as the resulting extents."""
    size = ["", net.constant(extents)] if extents else [net.constant([1.0, 1.0, *[float(scale)] * dims])]
    return net.op("Resize", x, "", *size, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def phase_taps(kernel, scale):
    """For each phase of the output: {offset in the small image: taps that read it}."""
    phases = []
    for phase in range(scale):
        taps = {}
        for t in range(kernel):
            taps.setdefault((phase + t - kernel // 2) // scale, []).append(t)
        phases.append(taps)
    return phases


@kind(dict(c=64, n=28, scale=2), dict(c=32, n=28, scale=3), dict(c=64, n=28, scale=2, k=5), dict(c=96, n=28, scale=2, group=96),
      dict(c=64, n=28, scale=2, sizes=True, context="within"), dict(c=64, n=28, scale=2, k=1), dict(c=64, n=512, scale=2, dims=1),
      dict(c=48, n=14, scale=2, batch=4, context="before"), dict(c=64, n=14, scale=4, k=1, out=16),
      dict(c=64, n=14, scale=2, out=3, context="after"))
def upsampled_conv(net, c, n, scale, k=3, group=1, sizes=False, dims=2, batch=1, out=0):
    """Nearest resizing, then a convolution: convolutions of the small image by summed taps, one a phase."""
    out = out or c
    x = net.image(batch, c, *[n] * dims)
    w = net.weight("w", out, c // group, *[k] * dims)
    if not net.expert:
        large = nearest(net, x, scale, dims, [batch, c, *[n * scale] * dims] if sizes else None)
        return net.end(net.conv(large, w, group=group), channels=out, dims=dims)
    if k == 1:
        return net.end(nearest(net, net.conv(x, w, group=group), scale, dims), channels=out, dims=dims)
    phases = phase_taps(k, scale)
    images = []
    for index in numpy.ndindex(*[scale] * dims):
        taps = [phases[i] for i in index]
        kernel = w
        for axis, one in enumerate(taps):
            kernel = sums_of(net, kernel, 2 + axis, [one[offset] for offset in sorted(one)])
        pads = [(-min(one), max(one)) for one in taps]
        images.append(net.conv_of([len(one) for one in taps], x, kernel, pads=pads, group=group))
    y = net.reshape(net.concat(1, *images), batch, *[scale] * dims, out, *[n] * dims)
    perm = [0, 1 + dims, *(axis for d in range(dims) for axis in (2 + dims + d, 1 + d))]
    return net.end(net.reshape(net.transpose(y, *perm), batch, out, *[n * scale] * dims), channels=out, dims=dims)


@kind(dict(c=64, v=448, n=28), dict(c=128, v=256, n=28, by="resize"), dict(c=64, v=256, n=28, by="tile", relu=True),
      dict(c=64, v=192, n=28, batch=4), dict(c=64, v=256, n=28, bias=True, context="within"), dict(c=32, v=64, n=28, k=3),
      dict(c=64, v=256, n=28, context="double"), dict(c=64, v=256, n=28, first=True, context="readers"))
def pooled_branch(net, c, v, n, by="expand", relu=False, batch=1, bias=False, k=1, first=False):
    """An image-pooling branch, repeated over the image and concatenated (ASPP): the layer after it computes the branch once."""
    x, pooled = net.image(batch, c, n, n), net.op("GlobalAveragePool", net.image(batch, v, n // 2, n // 2))
    w, b = net.weight("w", 128, c + v, k, k), net.bias("b", 128) if bias else None
    pooled = net.relu(pooled) if relu else pooled
    if not net.expert:
        if by == "resize":
            wide = nearest(net, pooled, n, 2)
        else:
            wide = net.op("Tile", pooled, net.constant([1, 1, n, n])) if by == "tile" else net.expand(pooled, batch, v, n, n)
        return net.end(net.conv(net.concat(1, *([wide, x] if first else [x, wide])), w, b), channels=128)
    parts = net.split(w, 1, [v, c] if first else [c, v])
    wx, wv = parts[::-1] if first else parts
    if k == 1:
        return net.end(net.add(net.conv_of([1, 1], x, wx, b), net.conv_of([1, 1], pooled, wv)), channels=128)
    border = bordered(net, net.conv_of([k, k], net.expand(pooled, batch, v, k, k), wv), k // 2, n)
    return net.end(net.add(net.conv_of([k, k], x, wx, b), border), channels=128)


def bordered(net, small, reach, n, dims=2):
    """An image of extent n of which all positions but those within `reach` of a side are equal, from one of extent 2 * reach + 1."""
    index = net.constant([*range(reach), *[reach] * (n - 2 * reach), *range(reach + 1, 2 * reach + 1)])
    for axis in range(2, 2 + dims):
        small = net.op("Gather", small, index, axis=axis)
    return small


@kind(dict(c=128, n=28), dict(c=64, n=56, k=5), dict(c=64, n=28, layers=2), dict(c=64, n=28, layers=3, relu=True),
      dict(c=128, n=28, relu=True, context="within"), dict(c=128, n=256, dims=1), dict(c=64, n=28, batch=4, by="tile"))
def constant_picture(net, c, n, k=3, layers=1, relu=False, dims=2, batch=1, by="expand"):
    """Padded convolutions of one vector repeated over the image: all positions but the border are equal."""
    v = net.input(batch, c, *[1] * dims)
    weights = [net.weight(f"w{i}", c, c, *[k] * dims) for i in range(layers)]
    reach = layers * (k // 2)
    extent = 2 * reach + 1 if net.expert else n
    x = net.op("Tile", v, net.constant([1, 1, *[extent] * dims])) if by == "tile" else net.expand(v, batch, c, *[extent] * dims)
    for w in weights:
        x = net.conv(x, w)
        x = net.relu(x) if relu else x
    return net.end(bordered(net, x, reach, n, dims) if net.expert else x, channels=c, dims=dims)


@kind(dict(c=64, n=28), dict(c=64, n=28, depth=3), dict(c=96, n=28, copies=3), dict(d=512, rows=128),
      dict(d=384, rows=128, depth=2, copies=3), dict(c=64, n=28, hidden=True), dict(c=64, n=28, depth=2, context="within"),
      dict(d=384, rows=128, hidden=True, context="double"))
def twins(net, c=0, n=0, d=0, rows=0, depth=1, copies=2, hidden=False):
    """The same layers several times on one input, which may arrive through transposes that cancel."""
    x = net.input(1, rows, d) if d else net.image(1, c, n, n)

    def encoder(value, copy):
        if hidden and copy:
            value = net.transpose(net.transpose(value, 0, *range(2, 3 if d else 4), 1), 0, *([2, 1] if d else [3, 1, 2]))
        for k in range(depth):
            value = net.matmul(value, net.matrix(f"w{k}", d, d)) if d else net.conv(value, net.weight(f"w{k}", c, c, 3, 3))
            value = net.relu(value) if k + 1 < depth else value
        return value
    ys = [encoder(x, 0)] * copies if net.expert else [encoder(x, copy) for copy in range(copies)]
    heads = [net.op(one, y) for one, y in zip(["Relu", "Sigmoid", "Tanh"], ys)]
    return net.end(net.concat(2 if d else 1, *heads), channels=copies * c, width=copies * d)


@kind(dict(c=64, n=28, batch=2), dict(c=64, n=28, batch=4, depth=2), dict(d=384, rows=64, batch=4),
      dict(d=256, rows=64, batch=8, depth=2), dict(c=64, n=28, batch=2, by="concat"),
      dict(c=64, n=28, batch=4, by="tile", context="after"), dict(d=384, rows=64, batch=2, by="concat", context="within"))
def tiled_batch(net, batch, c=0, n=0, d=0, rows=0, depth=1, by="expand"):
    """One input repeated over the batch (guided diffusion, beams), layers, then another operand: the layers run once."""
    shape = [rows, d] if d else [c, n, n]
    x = net.input(1, *shape) if d else net.image(1, *shape)
    condition = net.input(batch, 1, d) if d else net.input(batch, c, 1, 1)
    if not net.expert:
        if by == "concat":
            x = net.concat(0, *[x] * batch)
        else:
            x = net.op("Tile", x, net.constant([batch] + [1] * len(shape))) if by == "tile" else net.expand(x, batch, *shape)
    for k in range(depth):
        x = net.matmul(x, net.matrix(f"w{k}", d, d)) if d else net.conv(x, net.weight(f"w{k}", c, c, 3, 3))
        x = net.relu(x) if k + 1 < depth else x
    return net.end(net.relu(net.add(x, condition)), channels=c, width=d)


@kind(dict(c=128, n=14, inputs=2), dict(c=128, n=7, inputs=3), dict(c=256, n=7, inputs=2, depth=3), dict(d=1024, rows=1, inputs=2),
      dict(d=1024, rows=1, inputs=3, depth=3), dict(d=768, rows=4, inputs=2, norm=True),
      dict(c=128, n=14, inputs=2, depth=2, context="within"), dict(d=768, rows=1, inputs=2, norm=True, context="double"))
def siamese(net, inputs, c=0, n=0, d=0, rows=0, depth=2, norm=False):
    """One encoder on two or three inputs, then a comparison: one batch."""
    xs = [net.input(1, rows, d) if d else net.image(1, c, n, n) for _ in range(inputs)]

    def encoder(x):
        for k in range(depth):
            x = net.linear(x, net.matrix(f"w{k}", d, d), net.bias(f"b{k}", d)) if d else net.conv(x, net.weight(f"w{k}", c, c, 3, 3))
            x = net.relu(x)
            x = net.norm(x, f"norm{k}", d) if norm else x
        return x
    ys = net.split(encoder(net.concat(0, *xs)), 0, [1] * inputs) if net.expert else [encoder(x) for x in xs]
    y = net.op("Sub", ys[0], ys[1])
    return net.end(net.op("Mul", y, ys[2]) if inputs == 3 else y, channels=c, width=d)


@kind(dict(c=8, known=2, n=56), dict(c=16, known=48, n=56), dict(c=6, known=2, n=56, k=5, first=True), dict(c=16, known=8, n=56, k=1),
      dict(c=16, known=32, n=28, batch=4, context="before"), dict(d=64, known=64, rows=512),
      dict(d=96, known=32, rows=512, first=True, context="within"))
def coordinate_channels(net, known, c=0, n=0, k=3, d=0, rows=0, first=False, batch=1):
    """Constant channels concatenated to the input (CoordConv, Fourier features): a constant map added to the result."""
    def ordered(x, table):
        return [table, x] if first else [x, table]
    if d:
        x, w, table = net.input(1, rows, d), net.matrix("w", d + known, 128), waves(net, known, [rows])
        table = net.transpose(table, 0, 2, 1)
        if not net.expert:
            return net.end(net.matmul(net.concat(2, *ordered(x, table)), w), width=128)
        parts = net.split(w, 0, [known, d] if first else [d, known])
        wx, wt = parts[::-1] if first else parts
        return net.end(net.add(net.matmul(x, wx), net.matmul(table, wt)), width=128)
    x, w, table = net.image(batch, c, n, n), net.weight("w", 64, c + known, k, k), waves(net, known, [n, n])
    if not net.expert:
        wide = net.constant(numpy.repeat(net.constants[table], batch, axis=0), "positions.repeated") if batch > 1 else table
        return net.end(net.relu(net.conv(net.concat(1, *ordered(x, wide)), w)), channels=64)
    parts = net.split(w, 1, [known, c] if first else [c, known])
    wx, wt = parts[::-1] if first else parts
    return net.end(net.relu(net.add(net.conv_of([k, k], x, wx), net.conv_of([k, k], table, wt))), channels=64)


def waves(net, channels, extents):
    """Two channels are coordinates from -1 to 1, more are their sines."""
    grid = numpy.stack(numpy.meshgrid(*[numpy.linspace(-1, 1, n) for n in extents], indexing="ij"))
    rows = [grid[k % len(grid)] if k < len(grid) else numpy.sin((k // len(grid)) * numpy.pi * grid[k % len(grid)]) for k in range(channels)]
    return net.constant(numpy.stack(rows)[None].astype(numpy.float32), f"positions.{net.part}")
