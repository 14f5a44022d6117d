"""Pairs in which a partially equivalent mutant with a correction may gain: what differs is the border."""
from chance_kinds.registry import kind
from chance_kinds.weights import merged_kernels
from chance_kinds.windows import chain


def framed(net, center, box, n, reach):
    """A whole image from its center and box(begins, ends), which computes a strip of the frame of width `reach`."""
    left, right = (box([reach, a], [n - reach, a + reach]) for a in (0, n - reach))
    top, bottom = (box([a, 0], [a + reach, n]) for a in (0, n - reach))
    return net.concat(2, top, net.concat(3, left, center, right), bottom)


@kind(dict(c=32, wide=128, n=28), dict(c=16, wide=64, n=56), dict(c=24, wide=96, n=28, batch=4),
      dict(c=32, wide=128, n=28, context="within"), dict(c=32, wide=96, n=14, context="double"),
      dict(c=3, wide=32, n=112, context="before"), partial=True)
def padded_linear_convs(net, c, wide, n, batch=1):
    """Two padded 3 x 3 convolutions with nothing between: one 5 x 5, which is wrong in the outermost ring."""
    x = net.image(batch, c, n, n)
    w1, w2 = net.weight("w1", wide, c, 3, 3), net.weight("w2", c, wide, 3, 3)
    if not net.expert:
        return net.end(net.conv(net.conv(x, w1), w2), channels=c)
    layers = [((3, 1, 1, 1), lambda v, pads, w=w: net.conv(v, w, pads=pads)) for w in (w1, w2)]
    center = net.conv_of([5, 5], x, merged_kernels(net, w1, w2, 3, 3), pads=[(1, 1)] * 2)
    return net.end(framed(net, center, lambda begins, ends: chain(net, x, [n, n], begins, ends, layers), n, 1), channels=c)


@kind(dict(form="shift", c=64, n=56), dict(form="normalize", c=3, n=112, out=32), dict(form="expand", c=32, wide=128, n=28),
      dict(form="expand", c=16, wide=96, n=56, context="within"), dict(form="shift", c=64, n=28, batch=4, context="before"),
      dict(form="normalize", c=32, n=56, context="double"), partial=True)
def shift_before_padding(net, form, c, n, wide=0, out=0, batch=1):
    """A shift before a padded convolution: a constant map after it, which is one vector but for the border."""
    out = out or c
    x, v = net.image(batch, c, n, n), net.weight("v", out, wide or c, 3, 3)
    shape = [1, c, 1, 1]
    if form == "expand":
        w, b = net.weight("w", wide, c, 1, 1), net.bias("b", wide)
        if not net.expert:
            return net.end(net.conv(net.conv(x, w, b), v), channels=out)
        shifts = net.conv(net.expand(net.reshape(b, 1, wide, 1, 1), 1, wide, n, n), v)
        return net.end(net.add(net.conv_of([3, 3], x, merged_kernels(net, w, v, 1, 3)), shifts), channels=out)
    if form == "shift":
        b = net.weight("b", *shape, scale=1.0)
        if not net.expert:
            return net.end(net.conv(net.add(x, b), v), channels=out)
        return net.end(net.add(net.conv(x, v), net.conv(net.expand(b, 1, c, n, n), v)), channels=out)
    mean, deviation = net.weight("mean", *shape, scale=1.0), net.weight("deviation", *shape, positive=True)
    if not net.expert:
        return net.end(net.conv(net.op("Div", net.op("Sub", x, mean), deviation), v), channels=out)
    scaled = net.op("Div", v, deviation)
    shifts = net.conv_of([3, 3], net.expand(mean, 1, c, n, n), scaled)
    return net.end(net.op("Sub", net.conv_of([3, 3], x, scaled), shifts), channels=out)


def padded(net, x, axis, before, after, extent, mode):
    """`x` continued along an axis. wrap is slices and a Concat, as exporters write it."""
    if mode == "wrap":
        return net.concat(axis, net.slice(x, [axis], [extent - before], [extent]), x, net.slice(x, [axis], [0], [after]))
    pads = [0] * 8
    pads[axis], pads[4 + axis] = before, after
    value = [net.scalar(0.5)] if mode == "constant" else []
    return net.op("Pad", x, net.constant(pads), *value, mode=mode)


@kind(dict(mode="reflect", c=32, n=56), dict(mode="edge", c=32, n=56), dict(mode="wrap", c=32, n=56),
      dict(mode="reflect", c=16, n=56, k=7), dict(mode="constant", c=32, n=56), dict(mode="edge", c=32, n=56, group=32),
      dict(mode="wrap", c=32, n=28, batch=4, context="within"), dict(mode="reflect", c=32, n=28, context="double"), partial=True)
def padded_by_mode(net, mode, c, n, k=3, group=1, batch=1):
    """An image continued by reflection, its edge, its other side or a number, then a convolution: only strips are padded."""
    x, w, reach = net.image(batch, c, n, n), net.weight("w", c, c // group, k, k), k // 2

    def layer(value):
        return net.conv(value, w, pads=[(0, 0)] * 2, group=group)
    if not net.expert:
        for axis in (2, 3):
            x = padded(net, x, axis, reach, reach, n, mode)
        return net.end(layer(x), channels=c)

    def box(begins, ends):
        value = x
        for axis, begin, end in zip((2, 3), begins, ends):
            value = reading(net, value, axis, begin, end, n, reach, mode)
        return layer(value)
    return net.end(framed(net, layer(x), box, n, reach), channels=c)


def reading(net, x, axis, begin, end, n, reach, mode):
    """What the outputs from begin to end of an axis read, continued where they read beyond the image."""
    before, after = max(0, reach - begin), max(0, end + reach - n)
    low, high = max(0, begin - reach), min(n, end + reach)
    if mode == "wrap":
        bounds = [(n - before, n)] * (before > 0) + [(low, high)] + [(0, after)] * (after > 0)
        return net.concat(axis, *(net.slice(x, [axis], [a], [b]) for a, b in bounds))
    x = net.slice(x, [axis], [low], [high])
    return padded(net, x, axis, before, after, high - low, mode) if before or after else x
