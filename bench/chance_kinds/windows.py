"""What part of its input a chain of convolutions and pools reads for a part of its output."""


def needed(begin, end, extent, kernel, stride=1, dilation=1, pad=0):
    """((first, past the last) position of the input, (padding before, after)) of the outputs from begin to end."""
    low = begin * stride - pad
    high = (end - 1) * stride + (kernel - 1) * dilation + 1 - pad
    inside = max(0, low), min(extent, high)
    return inside, (inside[0] - low, high - inside[1])


def outputs(extent, kernel, stride=1, dilation=1, pad=0):
    return (extent + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1


def chain(net, x, extents, begins, ends, layers):
    """The box of a chain's output, computed from what it reads. layers: (window, run): the window's (kernel, stride, dilation, pad),
    and run(x, pads), which applies the layer with these pads."""
    sizes = [list(extents)]
    for window, _ in layers:
        sizes.append([outputs(n, *window) for n in sizes[-1]])
    boxes, pads = [list(zip(begins, ends))], []
    for (window, _), extent in zip(reversed(layers), reversed(sizes[:-1])):
        wanted = [needed(b, e, n, *window) for (b, e), n in zip(boxes[-1], extent)]
        boxes.append([box for box, _ in wanted])
        pads.append([pad for _, pad in wanted])
    axes = list(range(2, 2 + len(extents)))
    x = net.slice(x, axes, [b for b, _ in boxes[-1]], [e for _, e in boxes[-1]])
    for (_, run), pad in zip(layers, reversed(pads)):
        x = run(x, pad)
    return x
