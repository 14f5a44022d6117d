"""Numbers that are zero whatever the input: pruned channels, taps that only read padding."""
import numpy

from chance_kinds.registry import kind


@kind(dict(c=64, wide=128, kept=64, n=28), dict(c=64, wide=128, kept=48, n=28, scattered=True),
      dict(d=256, wide=1024, kept=256, rows=128), dict(d=256, wide=1024, kept=384, rows=64, scattered=True),
      dict(c=48, wide=96, kept=32, n=28, scattered=True, context="within"), dict(c=64, wide=128, kept=64, n=14, side="in"),
      dict(d=256, wide=768, kept=256, rows=128, side="in", context="after"),
      dict(d=256, wide=768, kept=256, rows=64, scattered=True, context="double"))
def pruned_channels(net, wide, kept, c=0, n=0, d=0, rows=0, scattered=False, side="out"):
    """Weights whose other channels are zero, on the side that makes them or on the one that reads them: smaller layers."""
    live = numpy.sort(numpy.random.default_rng(wide).permutation(wide)[:kept]) if scattered else numpy.arange(kept)
    w1, b1 = (net.matrix("w1", d, wide) if d else net.weight("w1", wide, c, 3, 3)), net.bias("b1", wide)
    w2 = net.matrix("w2", wide, d) if d else net.weight("w2", c, wide, 3, 3)
    zeroed = [(w1, 1 if d else 0), (b1, 0)] if side == "out" else [(w2, 0 if d else 1)]
    for name, axis in zeroed:
        dead = [slice(None)] * axis + [numpy.setdiff1d(numpy.arange(wide), live)]
        net.constants[name][tuple(dead)] = 0
    if net.expert:
        for name, axis in ((w1, 1 if d else 0), (b1, 0), (w2, 0 if d else 1)):
            net.constants[f"{name}.live"] = numpy.take(net.constants.pop(name), live, axis)
        w1, b1, w2 = (f"{name}.live" for name in (w1, b1, w2))
    if d:
        return net.end(net.matmul(net.relu(net.linear(net.input(1, rows, d), w1, b1)), w2), width=d)
    return net.end(net.conv(net.relu(net.conv(net.image(1, c, n, n), w1, b1)), w2), channels=c)


@kind(dict(c=512, n=1, k=3), dict(c=256, n=2, k=7), dict(c=192, n=8, k=3, dilation=12), dict(c=192, n=24, k=3, dilation=24),
      dict(c=128, n=4, k=9), dict(c=512, n=2, k=7, group=512), dict(c=512, n=8, k=31, group=512, context="within"),
      dict(c=128, n=2, k=5, dims=3), dict(c=256, n=1, k=3, batch=8, context="double"), dict(c=256, n=8, k=31, dims=1, context="readers"),
      dict(c=256, n=1, k=3, side=32))
def taps_in_padding(net, c, n, k, dilation=1, group=1, dims=2, batch=1, side=0):
    """A kernel larger than the padded image: only taps that can meet the image, for large dilations those of the middle."""
    extents = [n, side] if side else [n] * dims
    x, w = net.image(batch, c, *extents), net.weight("w", c, c // group, *[k] * dims)
    if not net.expert:
        return net.end(net.conv(x, w, dilation=dilation, group=group), channels=c, dims=dims)
    reaches = [min(k // 2, (extent - 1) // dilation) for extent in extents]
    kernel = [2 * reach + 1 for reach in reaches]
    begins = [k // 2 - reach for reach in reaches]
    live = net.slice(w, list(range(2, 2 + dims)), begins, [b + size for b, size in zip(begins, kernel)])
    return net.end(net.conv_of(kernel, x, live, dilation=dilation, group=group), channels=c, dims=dims)


@kind(dict(d=512, rows=128, live=128), dict(d=512, rows=128, live=256, rear=True), dict(c=64, n=28, live=16),
      dict(d=384, rows=64, live=96, context="within"))
def zeros_concatenated(net, live, d=0, rows=0, c=0, n=0, rear=False):
    """An input padded by channels of zeros: the rows of the weight that meet it."""
    size = d or c
    begin = size - live if rear else 0
    margins = [begin, size - live - begin]
    if d:
        x, w = net.input(1, rows, live), net.matrix("w", d, d)
        if net.expert:
            return net.end(net.matmul(x, net.slice(w, [0], [begin], [begin + live])), width=d)
        return net.end(net.matmul(net.op("Pad", x, net.constant([0, 0, margins[0], 0, 0, margins[1]])), w), width=d)
    x, w = net.image(1, live, n, n), net.weight("w", c, c, 3, 3)
    if net.expert:
        return net.end(net.conv_of([3, 3], x, net.slice(w, [1], [begin], [begin + live])), channels=c)
    return net.end(net.conv(net.op("Pad", x, net.constant([0, margins[0], 0, 0, 0, margins[1], 0, 0])), w), channels=c)
