"""Transposes that exporters leave around layers."""
from chance_kinds.registry import kind

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@kind(dict(c=32, n=56, layers=2), dict(c=64, n=28, layers=3, k=3), dict(c=32, n=56, layers=2, end="mean"),
      dict(c=32, n=56, layers=2, end="softmax"), dict(c=32, n=56, layers=3, group=32, k=3, context="within"),
      dict(c=48, n=28, layers=2, batch=4), dict(c=32, n=56, layers=2, context="double"))
def channels_last_export(net, c, n, layers, k=1, group=1, end="add", batch=1):
    """Layers with transposes around every convolution, as exports of channels-last frameworks have them."""
    x = y = net.image(batch, c, n, n)
    weights = [(net.weight(f"w{i}", c, c // group, k, k), net.bias(f"b{i}", c)) for i in range(layers)]
    if net.expert:
        for w, b in weights:
            y = net.relu(net.conv(y, w, b, group=group))
        if end == "mean":
            return net.end(net.mean(y, 2, 3, keep=0))
        if end == "softmax":
            return net.end(net.op("Softmax", y, axis=1))
        return net.end(net.add(y, x), channels=c)
    x = y = net.transpose(x, *LAST)
    for w, b in weights:
        y = net.transpose(net.conv(net.transpose(y, *FIRST), w, group=group), *LAST)
        y = net.relu(net.op("Add", y, b))
    if end == "mean":
        return net.end(net.mean(y, 1, 2, keep=0))
    if end == "softmax":
        return net.end(net.transpose(net.op("Softmax", y, axis=3), *FIRST))
    return net.end(net.transpose(net.add(y, x), *FIRST), channels=c)
