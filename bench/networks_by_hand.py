"""The forms of networks that an expert writes: functions that take the naive module (naive_networks.py) and return one that is equal."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F


def folded(weight, norm):
    """Kernel and bias of a convolution with its batch norm."""
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return (weight * scale.view(-1, 1, 1, 1)).detach(), (norm.bias - norm.running_mean * scale).detach()


def conv_of(weight, bias, **how):
    conv = nn.Conv2d(weight.shape[1] * how.get("groups", 1), weight.shape[0], weight.shape[2], bias=bias is not None, **how)
    conv.weight.data = weight.contiguous()
    if bias is not None:
        conv.bias.data = bias
    return conv


def merge_branches(net):
    return nn.Sequential(*(layer.merged() if hasattr(layer, "merged") else layer for layer in net))


class PyramidByHand(nn.Module):
    def __init__(self, naive):
        super().__init__()
        weight, bias = folded(naive.join[0].weight, naive.join[1])
        self.naive, self.join, self.mean = naive, conv_of(weight[:, :1024], bias), conv_of(weight[:, 1024:], None)

    def forward(self, x):
        mean = self.mean(self.naive.mean(F.adaptive_avg_pool2d(x, 1)))
        y = F.relu(self.join(torch.cat([part(x) for part in self.naive.parts], 1)) + mean)
        return F.interpolate(self.naive.last(y), size=(66, 66), mode="bilinear")


class CodebookByHand(nn.Module):
    def __init__(self, naive):
        super().__init__()
        self.encoder = naive.encoder
        self.norms = nn.Parameter((naive.codes ** 2).sum(1))
        self.products = nn.Parameter((-2 * naive.codes.t()).contiguous())

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1).reshape(-1, 64)
        return (z ** 2).sum(1, keepdim=True) + z @ self.products + self.norms


class LastTokenByHand(nn.Module):
    def __init__(self, naive):
        super().__init__()
        self.naive = naive

    def forward(self, x):
        *before, (first, attention, second, mlp) = self.naive.layers
        for one, mix, two, inner in before:
            x = x + mix(one(x))
            x = x + inner(two(x))
        y = first(x)
        q, k, v = (attention.split(part) for part in (attention.q(y[:, -1:]), attention.k(y), attention.v(y)))
        mixed = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v
        z = x[:, -1:] + attention.o(mixed.transpose(1, 2).flatten(2))
        return self.naive.last(z + mlp(second(z)))[:, -1]


def merge_updates(net):
    for _, attention, _, _ in net.layers:
        for layer, (down, up) in zip((attention.q, attention.k, attention.v), attention.updates):
            layer.weight.data = layer.weight.data + up.weight.data @ down.weight.data
        attention.updates = None
    return net


class SumsFirst(nn.Module):
    def __init__(self, naive):
        super().__init__()
        self.naive = naive

    def forward(self, x):
        q, k, v = (self.naive.split(layer(x)) for layer in (self.naive.q, self.naive.k, self.naive.v))
        y = (F.elu(q) + 1) @ ((F.elu(k) + 1).transpose(-1, -2) @ v)
        return self.naive.o(y.transpose(1, 2).flatten(2))


def sum_first(net):
    for layer in net.layers:
        layer[1] = SumsFirst(layer[1])
    return net


class Phases(nn.Module):
    """The four phases of an upsampled convolution side by side: 3 x 3 kernels of summed taps."""

    def __init__(self, layer):
        super().__init__()
        weight, bias = folded(layer[0].weight, layer[1])
        sums = torch.zeros(4, *weight.shape)
        for p, q, a, b in itertools.product(range(2), range(2), range(3), range(3)):
            sums[2 * p + q, :, :, (p + a - 1) // 2 + 1, (q + b - 1) // 2 + 1] += weight[:, :, a, b]
        self.conv = conv_of(sums.permute(1, 0, 2, 3, 4).flatten(0, 1), bias.repeat_interleave(4), padding=1)

    def forward(self, x):
        return F.relu(F.pixel_shuffle(self.conv(x), 2))


class UpsamplingByHand(nn.Module):
    def __init__(self, naive):
        super().__init__()
        self.layers, self.last = nn.Sequential(*map(Phases, naive.layers)), naive.last

    def forward(self, x):
        return torch.tanh(self.last(self.layers(x)))


class CoordinatesByHand(nn.Module):
    """Only the positions that the crop reads, without padding; the known channels are a constant map at each level."""

    # The level of each layer's grid, and the positions of its output.
    REGIONS = ((0, 54, 138), (1, 28, 68), (2, 15, 33), (1, 31, 65), (0, 64, 128))

    def __init__(self, naive):
        super().__init__()
        self.convs, self.last = nn.ModuleList(), naive.last
        for k, (layer, (level, begin, end)) in enumerate(zip([*naive.down, *naive.up], self.REGIONS)):
            weight, bias = folded(layer[0].weight, layer[1])
            grid = getattr(naive, f"grid{level}")[:, :, begin - 1:end + 1, begin - 1:end + 1]
            self.convs.append(conv_of(weight[:, :-2], None))
            self.register_buffer(f"map{k}", F.conv2d(grid, weight[:, -2:], bias))

    def layer(self, k, x):
        return F.relu(self.convs[k](x) + getattr(self, f"map{k}"))

    def forward(self, x):
        a = self.layer(0, x[:, :, 53:139, 53:139])
        b = self.layer(1, F.max_pool2d(a, 2))
        c = self.layer(2, F.max_pool2d(b, 2))
        y = self.layer(3, torch.cat([F.interpolate(c, scale_factor=2.0), b[:, :, 2:38, 2:38]], 1))
        y = F.interpolate(y, scale_factor=2.0)[:, :, 1:67, 1:67]
        return self.last(self.layer(4, torch.cat([y, a[:, :, 9:75, 9:75]], 1)))


class CausalByHand(nn.Module):
    """Level k keeps the positions that differ from the last one by a multiple of 2^k: a dense convolution, then one of stride 2."""

    def __init__(self, naive):
        super().__init__()
        self.naive = naive

    def forward(self, x):
        for first, second in self.naive.levels:
            y = F.relu(F.conv1d(F.pad(x, (2, 0)), first.weight, first.bias))
            y = F.relu(F.conv1d(F.pad(y, (1, 0)), second.weight, second.bias, stride=2))
            x = F.relu(x[:, :, 1::2] + y)
        return self.naive.last(x[:, :, -1])


class SiameseByHand(nn.Module):
    """Both pictures as one batch."""

    def __init__(self, naive):
        super().__init__()
        self.naive = naive

    def forward(self, x, y):
        means = F.adaptive_avg_pool2d(self.naive.encoder(torch.cat([x, y])), 1).flatten(1)
        return self.naive.last(means.view(1, -1))
