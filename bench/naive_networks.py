"""Networks in which an expert would save work, as PyTorch modules with random weights, and for most the form that the expert writes.

FORMS maps a name to (naive, hand): functions that return a module and its inputs. `hand` takes the naive module, so that both compute the
same, or is None. Batch norms are in inference mode and not folded. `bench/mutants` exports and measures them.
"""
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from networks_by_hand import (CausalByHand, CodebookByHand, CoordinatesByHand, LastTokenByHand, PyramidByHand, SiameseByHand,
                              UpsamplingByHand, conv_of, folded, merge_branches, merge_updates, sum_first)

FORMS = {}


def network(hand=None):
    def register(build):
        FORMS[build.__name__] = (build, hand)
        return build
    return register


def unit(inner, outer, kernel=3, stride=1, dilation=1, groups=1):
    conv = nn.Conv2d(inner, outer, kernel, stride, dilation * (kernel // 2), dilation, groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outer), nn.ReLU())


class Branches(nn.Module):
    """RepVGG's block while it is trained (Ding et al. 2021)."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.three = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer))
        self.one = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        self.same = nn.BatchNorm2d(inner) if inner == outer and stride == 1 else None

    def forward(self, x):
        y = self.three(x) + self.one(x)
        return F.relu(y + self.same(x) if self.same else y)

    def merged(self):
        (weight, bias), (one, one_bias) = (folded(branch[0].weight, branch[1]) for branch in (self.three, self.one))
        weight, bias = weight + F.pad(one, [1] * 4), bias + one_bias
        if self.same:
            same, same_bias = folded(F.pad(torch.eye(len(bias))[:, :, None, None], [1] * 4), self.same)
            weight, bias = weight + same, bias + same_bias
        return nn.Sequential(conv_of(weight, bias, stride=self.three[0].stride, padding=1), nn.ReLU())


@network(merge_branches)
def repvgg_a0():
    layers, inner = [], 3
    for outer, count in ((48, 1), (48, 2), (96, 4), (192, 14), (1280, 1)):
        for k in range(count):
            layers.append(Branches(inner, outer, 2 if k == 0 else 1))
            inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)), (torch.randn(1, 3, 224, 224),)


class Coordinates(nn.Module):
    """A U-Net with the coordinates as channels at every level (Liu et al. 2018), cropped at the end."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([unit(5, 32), unit(34, 64), unit(66, 128)])
        self.up = nn.ModuleList([unit(194, 64), unit(98, 32)])
        self.last = nn.Conv2d(32, 2, 1)
        for k, size in enumerate((192, 96, 48)):
            line = torch.linspace(-1, 1, size)
            self.register_buffer(f"grid{k}", torch.stack(torch.meshgrid(line, line, indexing="ij"))[None])

    def forward(self, x):
        a = self.down[0](torch.cat([x, self.grid0], 1))
        b = self.down[1](torch.cat([F.max_pool2d(a, 2), self.grid1], 1))
        c = self.down[2](torch.cat([F.max_pool2d(b, 2), self.grid2], 1))
        y = self.up[0](torch.cat([F.interpolate(c, scale_factor=2.0), b, self.grid1], 1))
        y = self.up[1](torch.cat([F.interpolate(y, scale_factor=2.0), a, self.grid0], 1))
        return self.last(y)[:, :, 64:128, 64:128]


@network(CoordinatesByHand)
def coordinate_unet():
    return Coordinates(), (torch.randn(1, 3, 192, 192),)


class Pyramid(nn.Module):
    """DeepLab's head: atrous branches and the mean of the image, predicted after upsampling."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([unit(1024, 256, 1)] + [unit(1024, 256, dilation=d) for d in (6, 12, 18)])
        self.mean, self.join, self.last = unit(1024, 256, 1), unit(1280, 256, 1), nn.Conv2d(256, 21, 1)

    def forward(self, x):
        mean = F.interpolate(self.mean(F.adaptive_avg_pool2d(x, 1)), size=(33, 33), mode="bilinear")
        y = self.join(torch.cat([part(x) for part in self.parts] + [mean], 1))
        return self.last(F.interpolate(y, size=(66, 66), mode="bilinear"))


@network(PyramidByHand)
def atrous_head():
    return Pyramid(), (torch.randn(1, 1024, 33, 33),)


class Codebook(nn.Module):
    """The encoder of a VQ-VAE and its distances to a codebook, as they are usually written."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(unit(3, 64, 3, 2), unit(64, 128, 3, 2), unit(128, 128), nn.Conv2d(128, 64, 1))
        self.codes = nn.Parameter(torch.randn(512, 64))

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1).reshape(-1, 1, 64)
        return ((z - self.codes[None]) ** 2).sum(-1)


@network(CodebookByHand)
def codebook():
    return Codebook(), (torch.randn(1, 3, 128, 128),)


class Causal(nn.Module):
    """Eight levels of dilated causal convolutions (Bai et al. 2018) of which the last position is used."""

    def __init__(self):
        super().__init__()
        self.levels = nn.ModuleList(nn.ModuleList(nn.Conv1d(128, 128, 3, dilation=2 ** k) for _ in range(2)) for k in range(8))
        self.last = nn.Linear(128, 64)

    def forward(self, x):
        for k, (first, second) in enumerate(self.levels):
            pad = 2 * 2 ** k
            y = F.relu(first(F.pad(x, (pad, 0))))
            x = F.relu(x + F.relu(second(F.pad(y, (pad, 0)))))
        return self.last(x[:, :, -1])


@network(CausalByHand)
def causal_convs():
    return Causal(), (torch.randn(1, 128, 512),)


class Attention(nn.Module):
    def __init__(self, width, heads, low_rank=0, causal=0, linear=False):
        super().__init__()
        self.heads, self.linear = heads, linear
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        pair = lambda: nn.ModuleList([nn.Linear(width, low_rank, bias=False), nn.Linear(low_rank, width, bias=False)])  # noqa: E731
        self.updates = nn.ModuleList(pair() for _ in range(3)) if low_rank else None
        self.register_buffer("mask", torch.triu(torch.full((causal, causal), float("-inf")), 1) if causal else None)

    def split(self, y):
        return y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x):
        parts = [layer(x) for layer in (self.q, self.k, self.v)]
        if self.updates:
            parts = [part + up(down(x)) for part, (down, up) in zip(parts, self.updates)]
        q, k, v = map(self.split, parts)
        if self.linear:
            y = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-1, -2) @ v
        else:
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            y = torch.softmax(scores if self.mask is None else scores + self.mask, -1) @ v
        return self.o(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, width, heads, layers, last=False, **how):
        super().__init__()
        block = lambda: nn.ModuleList([  # noqa: E731
            nn.LayerNorm(width), Attention(width, heads, **how), nn.LayerNorm(width),
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))])
        self.layers = nn.ModuleList(block() for _ in range(layers))
        self.last = nn.Linear(width, 4096) if last else None

    def forward(self, x):
        for first, attention, second, mlp in self.layers:
            x = x + attention(first(x))
            x = x + mlp(second(x))
        return self.last(x)[:, -1] if self.last else x


@network(LastTokenByHand)
def last_token():
    return Transformer(512, 8, 2, last=True, causal=384), (torch.randn(1, 384, 512),)


@network(merge_updates)
def low_rank_updates():
    return Transformer(512, 8, 3, low_rank=64), (torch.randn(1, 128, 512),)


@network(sum_first)
def linear_attention():
    return Transformer(256, 4, 3, linear=True), (torch.randn(1, 1024, 256),)


class Siamese(nn.Module):
    """One encoder, two pictures."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(unit(3, 64, 3, 2), unit(64, 128, 3, 2), unit(128, 256), unit(256, 256))
        self.last = nn.Linear(512, 64)

    def forward(self, x, y):
        return self.last(torch.cat([F.adaptive_avg_pool2d(self.encoder(v), 1).flatten(1) for v in (x, y)], 1))


@network(SiameseByHand)
def siamese():
    return Siamese(), (torch.randn(1, 3, 96, 96), torch.randn(1, 3, 96, 96))


class Upsampling(nn.Module):
    """Nearest upsampling before every convolution (Odena et al. 2016)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([unit(256, 128), unit(128, 64), unit(64, 32)])
        self.last = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(F.interpolate(x, scale_factor=2.0))
        return torch.tanh(self.last(x))


@network(UpsamplingByHand)
def upsampling_decoder():
    return Upsampling(), (torch.randn(1, 256, 16, 16),)


class LargeKernel(nn.Module):
    """RepLKNet's block while it is trained (Ding et al. 2022): a kernel as large as the picture, and a small one beside it."""

    def __init__(self, width, kernel):
        super().__init__()
        self.one, self.two = unit(width, width, 1), nn.Sequential(nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width))
        branch = lambda k: nn.Sequential(nn.Conv2d(width, width, k, 1, k // 2, groups=width, bias=False), nn.BatchNorm2d(width))  # noqa: E731
        self.large, self.small = branch(kernel), branch(5)
        self.inner = nn.Sequential(unit(width, 4 * width, 1), nn.Conv2d(4 * width, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.one(x)
        x = x + self.two(F.relu(self.large(y) + self.small(y)))
        return x + self.inner(x)


@network()
def large_kernels():
    stage = lambda width, kernel, count: [LargeKernel(width, kernel) for _ in range(count)]  # noqa: E731
    net = nn.Sequential(*stage(512, 27, 4), unit(512, 1024, 1), unit(1024, 1024, 3, 2, groups=1024), *stage(1024, 13, 2))
    return net, (torch.randn(1, 512, 14, 14),)


@network()
def swin_t():
    return torchvision.models.swin_t(weights=None), (torch.randn(1, 3, 224, 224),)


class Speech(nn.Module):
    """A recurrent acoustic model over frames of 80 features."""

    def __init__(self, cell, both):
        super().__init__()
        self.cells, self.last = cell(80, 256, 3, bidirectional=both), nn.Linear(512 if both else 256, 40)

    def forward(self, x):
        return self.last(self.cells(x)[0])


def speech(cell, frames, both):
    return lambda: (Speech(cell, both), (torch.randn(frames, 1, 80),))


# Not among the twelve: `bench/mutants --only speech_..`.
SPEECH = {f"speech_{name}_{frames}{'_both' if both else ''}": speech(cell, frames, both)
          for name, cell in (("gru", nn.GRU), ("lstm", nn.LSTM)) for frames in (200, 2000) for both in (False, True)}


def prepared(net):
    """In inference mode, with statistics of batch norms that are not trivial."""
    for module in net.eval().modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.1)
    return net


def build(name):
    """The naive network, the one by hand (or None) and the inputs. RuntimeError where they differ."""
    make, rewrite = FORMS[name] if name in FORMS else (SPEECH[name], None)

    def fresh():
        torch.manual_seed(0)
        net, inputs = make()
        return prepared(net), inputs
    naive, inputs = fresh()
    if rewrite is None:
        return naive, None, inputs
    hand = rewrite(fresh()[0]).eval()
    with torch.no_grad():
        want, have = naive(*inputs), hand(*inputs)
    if not (want - have).abs().max() <= 1e-5 * want.abs().max():
        raise RuntimeError(f"{name}: the network by hand computes something else")
    return naive, hand, inputs
