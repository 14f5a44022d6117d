"""Layers of which only a part is needed: crops, strides, positions, channels."""
import numpy

from chance_kinds.registry import kind
from chance_kinds.windows import chain


def conv_layer(net, name, c, kernel, dims, stride=1, dilation=1, pad=None, group=1, relu=True):
    """(window, run) as windows.chain() takes them."""
    w = net.weight(name, c, c // group, *[kernel] * dims)
    pad = dilation * (kernel // 2) if pad is None else pad

    def run(x, pads):
        y = net.conv(x, w, pads=pads, stride=stride, dilation=dilation, group=group)
        return net.relu(y) if relu else y
    return (kernel, stride, dilation, pad), run


def whole(net, x, layers, dims):
    for (_, _, _, pad), run in layers:
        x = run(x, [(pad, pad)] * dims)
    return x


@kind(dict(c=32, n=64, begin=24, end=40, kernels=(3, 3)), dict(c=32, n=64, begin=0, end=16, kernels=(3, 3, 3)),
      dict(c=48, n=32, begin=15, end=17, kernels=(3, 5)), dict(c=32, n=48, begin=32, end=48, kernels=(3, 3), relu=True),
      dict(c=64, n=32, begin=8, end=16, kernels=(3, 1, 3), relu=True, context="within"),
      dict(c=64, n=32, begin=4, end=20, kernels=(3, 3), group=8, relu=True),
      dict(c=32, n=64, begin=24, end=40, kernels=(3, 3), dilation=2),
      dict(c=24, n=64, begin=20, end=44, kernels=(3, 3), batch=2, relu=True, context="double"),
      dict(c=32, n=48, begin=16, end=24, kernels=(3, 3), mid=True, relu=True))
def conv_then_crop(net, c, n, begin, end, kernels, relu=False, group=1, dilation=1, batch=1, mid=False):
    """Padded convolutions and a crop of the result: the crop moves to the input."""
    x = net.image(batch, c, n, n)
    layers = [conv_layer(net, f"w{k}", c, kernel, 2, dilation=dilation, group=group, relu=relu) for k, kernel in enumerate(kernels)]
    if mid:
        x = whole(net, x, layers[:1], 2)
        net.end(x, channels=c)
        layers = layers[1:]
    if net.expert:
        return net.end(chain(net, x, [n, n], [begin] * 2, [end] * 2, layers), channels=c)
    return net.end(net.slice(whole(net, x, layers, 2), [2, 3], [begin] * 2, [end] * 2), channels=c)


@kind(dict(c=64, length=256, kernels=(3, 3, 3)), dict(c=64, length=512, kernels=(2, 2, 2, 2), grow=True),
      dict(c=96, length=128, kernels=(3, 3), context="within"), dict(c=64, length=256, kernels=(3, 3, 3), last=8, grow=True))
def last_of_causal_convs(net, c, length, kernels, last=1, grow=False):
    """Causal convolutions over time of which the last steps are used."""
    x = net.image(1, c, length)
    dilations = [2 ** k if grow else 1 for k in range(len(kernels))]
    weights = [net.weight(f"w{k}", c, c, kernel) for k, kernel in enumerate(kernels)]
    reach = sum(d * (k - 1) for d, k in zip(dilations, kernels))
    if net.expert:
        x = net.slice(x, [2], [length - last - reach], [length])
    for w, k, d in zip(weights, kernels, dilations):
        x = net.relu(net.conv(x, w, pads=[(0 if net.expert else d * (k - 1), 0)], dilation=d))
    return net.end(x if net.expert else net.slice(x, [2], [length - last], [length]), channels=c, dims=1)


@kind(dict(c=64, n=56, k=3, step=2), dict(c=64, n=56, k=1, step=2), dict(c=32, n=63, k=3, step=3, relu=True),
      dict(c=64, n=28, k=5, step=2, by="gather"), dict(c=64, n=56, k=3, step=2, by="pool", relu=True),
      dict(c=64, n=28, k=3, step=2, group=64, relu=True), dict(c=48, n=28, k=3, step=2, relu=True, batch=4, context="within"),
      dict(c=64, n=56, k=3, step=2, max=True), dict(c=64, n=32, k=3, step=2, relu=True, context="double"))
def strided_slice(net, c, n, k, step, by="slice", relu=False, group=1, batch=1, max=False):
    """A convolution or max pooling of stride 1 of which every second or third position is used: a larger stride."""
    x = net.image(batch, c, n, n)
    w = None if max else net.weight("w", c, c // group, k, k)

    def layer(stride):
        y = net.pool("Max", x, k, stride, pad=k // 2) if max else net.conv(x, w, stride=stride, group=group)
        return net.relu(y) if relu else y
    if net.expert:
        return net.end(layer(step), channels=c)
    y = layer(1)
    if by == "slice":
        y = net.slice(y, [2, 3], [0, 0], [n, n], [step, step])
    elif by == "pool":
        y = net.pool("Max", y, 1, step)
    else:
        index = net.constant(range(0, n, step))
        y = net.op("Gather", net.op("Gather", y, index, axis=2), index, axis=3)
    return net.end(y, channels=c)


@kind(dict(d=512, rows=128, out=2048), dict(d=256, rows=256, out=4096, last=4), dict(d=512, rows=128, out=2048, hidden=1024),
      dict(d=384, rows=196, out=1000, hidden=768, first=True), dict(d=384, rows=128, out=1024, hidden=768, context="after"),
      dict(d=256, rows=128, out=2048, picked=True))
def positions_of_head(net, d, rows, out, hidden=0, last=1, first=False, picked=False):
    """A head of linear layers of which the first, the last or some listed positions are used."""
    x = net.input(1, rows, d)
    at = [3, 17, 18, 50, 101] if picked else list(range(last)) if first else list(range(rows - last, rows))

    def cut(value):
        return net.op("Gather", value, net.constant(at), axis=1)
    x = cut(x) if net.expert else x
    if hidden:
        x = net.relu(net.linear(net.norm(x, "norm", d), net.matrix("w0", d, hidden), net.bias("b0", hidden)))
    y = net.linear(x, net.matrix("w", hidden or d, out), net.bias("b", out))
    return net.end(y if net.expert else cut(y), width=out)


def attention_of(net, q, k, v, rows, keys, heads, width, mask=None):
    """Attention of flat (1, rows, heads * width) values."""
    def heads_first(x, count):
        return net.transpose(net.reshape(x, 1, count, heads, width), 0, 2, 1, 3)
    q, k, v = heads_first(q, rows), heads_first(k, keys), heads_first(v, keys)
    scores = net.op("Mul", net.matmul(q, net.transpose(k, 0, 1, 3, 2)), net.scalar(width ** -0.5))
    mixed = net.matmul(net.op("Softmax", net.add(scores, mask) if mask else scores, axis=-1), v)
    return net.reshape(net.transpose(mixed, 0, 2, 1, 3), 1, rows, heads * width)


@kind(dict(d=256, rows=128, heads=4), dict(d=384, rows=64, heads=6, causal=True), dict(d=256, rows=128, heads=4, first=True),
      dict(d=192, rows=128, heads=3, causal=True, context="within"), dict(d=256, rows=128, heads=4, last=4),
      dict(d=128, rows=256, heads=4, causal=True, context="double"))
def positions_of_block(net, d, rows, heads, causal=False, first=False, last=1):
    """A transformer block of which the first or the last positions are used: its queries and all after them shrink."""
    x = net.input(1, rows, d)
    begin = 0 if first else rows - last
    n = net.norm(x, "norm1", d)

    def cut(value):
        return net.slice(value, [1], [begin], [begin + last])
    residual, queries, count = (cut(x), cut(n), last) if net.expert else (x, n, rows)
    q, k, v = (net.linear(value, net.matrix(name, d, d), net.bias(f"{name}.b", d)) for name, value in (("q", queries), ("k", n), ("v", n)))
    mask = None
    if causal:
        triangle = numpy.triu(numpy.full((rows, rows), -numpy.inf, numpy.float32), 1)[None, None]
        mask = net.constant(triangle[:, :, begin:begin + last] if net.expert else triangle)
    y = net.add(residual, net.linear(attention_of(net, q, k, v, count, rows, heads, d // heads, mask), net.matrix("o", d, d)))
    inner = net.relu(net.linear(net.norm(y, "norm2", d), net.matrix("up", d, 4 * d), net.bias("up.b", 4 * d)))
    y = net.add(y, net.linear(inner, net.matrix("down", 4 * d, d), net.bias("down.b", d)))
    return net.end(y if net.expert else cut(y), width=d)


@kind(dict(c=64, n=28, used=16), dict(c=128, n=14, used=32, begin=64), dict(c=64, n=28, used=32, next=True),
      dict(c=64, n=28, used=16, next=True, context="within"), dict(d=512, rows=128, used=128),
      dict(d=512, rows=64, used=128, begin=256, context="after"))
def unused_channels(net, used, c=0, n=0, d=0, rows=0, begin=0, next=False):
    """A layer of which some channels are read: its weight shrinks, and that of the layer before."""
    if d:
        x, w = net.input(1, rows, d), net.matrix("w", d, d)
        if net.expert:
            return net.end(net.matmul(x, net.slice(w, [1], [begin], [begin + used])), width=used)
        return net.end(net.slice(net.matmul(x, w), [2], [begin], [begin + used]), width=used)
    x, w, b = net.image(1, c, n, n), net.weight("w", c, c, 3, 3), net.bias("b", c)
    if next:  # A depthwise layer between passes the cut on.
        v = net.weight("v", c, 1, 3, 3)
    if net.expert:
        y = net.conv_of([3, 3], x, net.slice(w, [0], [begin], [begin + used]), net.slice(b, [0], [begin], [begin + used]))
        if next:
            y = net.conv_of([3, 3], net.relu(y), net.slice(v, [0], [begin], [begin + used]), group=used)
        return net.end(y, channels=used)
    y = net.conv(x, w, b)
    y = net.conv(net.relu(y), v, group=c) if next else y
    return net.end(net.slice(y, [1], [begin], [begin + used]), channels=used)
