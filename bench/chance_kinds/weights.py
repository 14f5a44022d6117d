"""What experts compute from stored weights: nodes over constants, which a backend evaluates once."""


def padded_kernel(net, w, kernel, window):
    """A kernel in the middle of a larger window of zeros."""
    if tuple(kernel) == tuple(window):
        return w
    margins = [(b - a) // 2 for a, b in zip(kernel, window)]
    return net.op("Pad", w, net.constant([0, 0, *margins, 0, 0, *margins]))


def scaled_kernel(net, w, scale, dims):
    """Output channels times `scale`."""
    return net.op("Mul", w, net.reshape(scale, -1, *[1] * (dims + 1)))


def merged_kernels(net, w1, w2, k1, k2):
    """The kernel of a convolution by w1 and then one by w2, both square, of stride 1, without groups: their full convolution."""
    flipped = w2 if k2 == 1 else net.slice(w2, [2, 3], [-1, -1], [-k2 - 1, -k2 - 1], [-1, -1])
    full = net.conv_of([k2, k2], net.transpose(w1, 1, 0, 2, 3), flipped, pads=[(k2 - 1, k2 - 1)] * 2)
    return net.transpose(full, 1, 0, 2, 3)


def sums_of(net, w, axis, groups):
    """Slices of an axis summed by groups: the output has one entry a group."""
    parts = [net.add(*(net.slice(w, [axis], [t], [t + 1]) for t in group)) for group in groups]
    return parts[0] if len(parts) == 1 else net.concat(axis, *parts)
