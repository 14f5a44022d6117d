"""Branches that one convolution computes, and layers between which nothing happens."""
import numpy

from chance_kinds.registry import kind
from chance_kinds.weights import merged_kernels, padded_kernel, scaled_kernel


def batch_norm(net, x, name, channels):
    stored = [net.weight(f"{name}.gamma", channels, positive=True), net.bias(f"{name}.beta", channels), net.bias(f"{name}.mean", channels),
              net.weight(f"{name}.variance", channels, positive=True)]
    return net.op("BatchNormalization", x, *stored, epsilon=1e-5)


def batch_norm_line(net, name, channels):
    """(scale, shift) of the norm."""
    deviation = net.op("Sqrt", net.op("Add", net.weight(f"{name}.variance", channels, positive=True), net.scalar(1e-5)))
    scale = net.op("Div", net.weight(f"{name}.gamma", channels, positive=True), deviation)
    return scale, net.op("Sub", net.bias(f"{name}.beta", channels), net.op("Mul", net.bias(f"{name}.mean", channels), scale))


def identity_kernel(net, channels, group, dims):
    width = channels // group
    eye = numpy.zeros((channels, width), numpy.float32)
    eye[numpy.arange(channels), numpy.arange(channels) % width] = 1
    return net.constant(eye.reshape(channels, width, *[1] * dims), f"identity.{net.part}")


@kind(dict(c=128, n=28, kernels=("3x3", "1x1", "id")), dict(c=64, n=56, kernels=("3x3", "1x1", "id"), norms=True),
      dict(c=128, n=28, kernels=("3x3", "1x1", "id"), group=4, norms=True),
      dict(c=96, n=28, kernels=("3x3", "1x1", "id"), group=96, norms=True), dict(c=64, n=56, kernels=("3x3", "1x1"), stride=2),
      dict(c=64, n=28, kernels=("3x3", "1x3", "3x1")), dict(c=64, n=28, kernels=("5x5", "3x3", "1x1"), context="within"),
      dict(c=64, n=28, kernels=("3x3", "3x3"), norms=True), dict(c=64, n=28, kernels=("3x3", "1x1", "id"), norms=True, context="double"),
      dict(c=64, n=28, kernels=("7x7", "3x3"), group=64), dict(c=64, n=256, kernels=("3", "1", "id"), norms=True),
      dict(c=48, n=28, batch=4, kernels=("3x3", "1x1", "id"), context="readers"))
def reparameterized(net, c, n, kernels, group=1, stride=1, norms=False, batch=1):
    """Parallel linear branches of several kernels, such as RepVGG's and ACNet's, summed: one kernel."""
    shapes = [tuple(map(int, kernel.split("x"))) for kernel in kernels if kernel != "id"]
    dims = len(shapes[0])
    x = net.image(batch, c, *[n] * dims)
    weights = [net.weight(f"w{k}", c, c // group, *shape) for k, shape in enumerate(shapes)]
    if not net.expert:
        terms = [net.conv(x, w, stride=stride, group=group) for w in weights] + [x] * ("id" in kernels)
        if norms:
            terms = [batch_norm(net, term, f"norm{k}", c) for k, term in enumerate(terms)]
        return net.end(net.relu(net.add(*terms)), channels=c, dims=dims)
    window, merged, shifts = shapes[0], [], []
    shapes, weights = (shapes + [(1,) * dims], weights + [identity_kernel(net, c, group, dims)]) if "id" in kernels else (shapes, weights)
    for k, (shape, w) in enumerate(zip(shapes, weights)):
        if norms:
            scale, shift = batch_norm_line(net, f"norm{k}", c)
            shifts.append(shift)
            w = scaled_kernel(net, w, scale, dims)
        merged.append(padded_kernel(net, w, shape, window))
    y = net.conv_of(window, x, net.add(*merged), net.add(*shifts) if norms else None, stride=stride, group=group)
    return net.end(net.relu(y), channels=c, dims=dims)


@kind(dict(d=768, rank=512, rows=128), dict(d=512, rank=256, rows=64, scaled=True), dict(d=768, rank=256, rows=1),
      dict(d=512, rank=128, rows=256, branches=2), dict(d=512, rank=256, rows=128, context="after"),
      dict(d=512, rank=384, rows=128, mid=True), dict(d=384, rank=256, rows=128, context="double"))
def low_rank_update(net, d, rank, rows, scaled=False, branches=1, mid=False):
    """x W + x A B, as adapters (LoRA) are exported: x (W + A B)."""
    x = net.input(1, rows, d)
    w = net.matrix("w", d, d)
    adapters = [(net.matrix(f"a{k}", d, rank), net.matrix(f"b{k}", rank, d)) for k in range(branches)]
    scale = net.scalar(0.25) if scaled else None

    def times(value):
        return net.op("Mul", value, scale) if scaled else value
    if net.expert:
        if mid:
            net.end(net.mean(net.matmul(net.mean(x, 1), adapters[0][0]), 2))
        return net.end(net.matmul(x, net.add(w, *(times(net.matmul(a, b)) for a, b in adapters))), width=d)
    inner = [net.matmul(x, a) for a, _ in adapters]
    if mid:
        net.end(net.mean(net.mean(inner[0], 1), 2))
    return net.end(net.add(net.matmul(x, w), *(times(net.matmul(y, b)) for y, (_, b) in zip(inner, adapters))), width=d)


@kind(dict(c=64, rank=32, n=28, k=3), dict(c=128, rank=64, n=28, k=1), dict(c=64, rank=64, n=28, k=3, stride=2),
      dict(c=96, rank=48, n=14, k=3, context="within"))
def low_rank_conv(net, c, rank, n, k, stride=1):
    """A convolution plus a low-rank path of two: one convolution."""
    x = net.image(1, c, n, n)
    w, a, b = net.weight("w", c, c, k, k), net.weight("a", rank, c, k, k), net.weight("b", c, rank, 1, 1)
    if net.expert:
        product = net.matmul(net.reshape(b, c, rank), net.reshape(a, rank, c * k * k))
        return net.end(net.conv_of([k, k], x, net.add(w, net.reshape(product, c, c, k, k)), stride=stride), channels=c)
    return net.end(net.add(net.conv(x, w, stride=stride), net.conv(net.conv(x, a, stride=stride), b)), channels=c)


@kind(dict(c=64, wide=384, n=28), dict(c=64, wide=256, n=28, biases=True), dict(c=32, wide=192, n=56, k=3),
      dict(c=64, wide=256, n=14, k=3, biases=True), dict(c=64, wide=256, n=28, biases=True, context="within"),
      dict(c=48, wide=288, n=28, batch=4), dict(c=64, wide=384, n=28, mid=True))
def conv_bottleneck(net, c, wide, n, k=1, biases=False, batch=1, mid=False):
    """An expansion (k x k) and a projection (1 x 1) with nothing between: one convolution."""
    x = net.image(batch, c, n, n)
    w1, w2 = net.weight("w1", wide, c, k, k), net.weight("w2", c, wide, 1, 1)
    b1, b2 = (net.bias("b1", wide), net.bias("b2", c)) if biases else (None, None)
    if not net.expert:
        inner = net.conv(x, w1, b1)
        if mid:
            net.end(net.op("GlobalAveragePool", inner))
        return net.end(net.conv(inner, w2, b2), channels=c)
    if mid:
        net.end(net.conv(net.op("GlobalAveragePool", x), w1))
    flat = net.reshape(w2, c, wide)
    merged = net.reshape(net.matmul(flat, net.reshape(w1, wide, c * k * k)), c, c, k, k)
    bias = net.add(net.matmul(flat, b1), b2) if biases else None
    return net.end(net.conv_of([k, k], x, merged, bias), channels=c)


@kind(dict(widths=(256, 1024, 256), rows=128), dict(widths=(256, 1024, 256), rows=128, biases=True),
      dict(widths=(128, 512, 512, 128), rows=128, biases=True), dict(widths=(512, 2048, 128), rows=32),
      dict(widths=(256, 1024, 256), rows=1, biases=True), dict(widths=(256, 768, 256), rows=64, biases=True, context="within"),
      dict(widths=(192, 768, 192), rows=64, biases=True, context="double"),
      dict(widths=(256, 1024, 256), rows=64, gemm=True, biases=True))
def linear_bottleneck(net, widths, rows, biases=False, gemm=False):
    """Linear layers with nothing between: one of the widths at the ends."""
    x = net.input(*([rows, widths[0]] if gemm else [1, rows, widths[0]]))
    layers = [(net.matrix(f"w{k}", a, b), net.bias(f"b{k}", b) if biases else None) for k, (a, b) in enumerate(zip(widths, widths[1:]))]
    if net.expert:
        w, b = layers[0]
        for v, more in layers[1:]:
            b = net.add(net.matmul(b, v), more) if biases else None
            w = net.matmul(w, v)
        return net.end(net.linear(x, w, b), width=widths[-1])
    for w, b in layers:
        x = net.op("Gemm", x, w, b) if gemm else net.linear(x, w, b)
    return net.end(x, width=widths[-1])


@kind(dict(c=32, wide=128, n=30, kernels=(3, 3)), dict(c=16, wide=96, n=56, kernels=(3, 3)), dict(c=32, wide=128, n=28, kernels=(1, 3)),
      dict(c=32, wide=128, n=28, kernels=(3, 1)), dict(c=16, wide=64, n=28, kernels=(3, 5)),
      dict(c=32, wide=128, n=28, kernels=(1, 3), context="within"), dict(c=3, wide=32, n=112, kernels=(3, 3), context="before"))
def merged_convs(net, c, wide, n, kernels):
    """Two convolutions without padding and with nothing between: one of a larger kernel."""
    x = net.image(1, c, n, n)
    k1, k2 = kernels
    w1, w2 = net.weight("w1", wide, c, k1, k1), net.weight("w2", c, wide, k2, k2)
    none = [(0, 0)] * 2
    if net.expert:
        return net.end(net.conv_of([k1 + k2 - 1] * 2, x, merged_kernels(net, w1, w2, k1, k2), pads=none), channels=c)
    return net.end(net.conv(net.conv(x, w1, pads=none), w2, pads=none), channels=c)
