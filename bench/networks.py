"""Well-known architectures as ONNX files with random weights, for benchmarks beyond the models at hand.

Shapes, strides, channels and connections are those of the papers named; batch norms are folded, as exporters do. Weights are drawn so that
activations keep their size (seeded: equal bytes every time). `bench/make_networks` writes them.
"""
import math

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph under construction; methods append a node and return the name of its output."""

    def __init__(self, name, shape, kind=TensorProto.FLOAT):
        self.name, self.nodes, self.weights, self.random = name, [], [], numpy.random.default_rng(1)
        self.inputs = [helper.make_tensor_value_info("input", kind, shape)]
        self.channels = {"input": shape[1]}

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        for name in names:
            self.channels[name] = self.channels.get(inputs[0])
        return names[0] if outputs == 1 else names

    def constant(self, values, kind=numpy.float32):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(values, kind), name))
        return name

    def draw(self, *shape, scale):
        return self.constant(self.random.standard_normal(shape) * scale)

    def conv(self, x, channels, kernel=1, stride=1, groups=1, dilation=1, pads=None, act="Relu", gain=2.0):
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        own = self.channels[x]
        pads = [dilation * (k - 1) // 2 for k in kernel] * 2 if pads is None else pads
        fan_in = own // groups * kernel[0] * kernel[1]
        w = self.draw(channels, own // groups, *kernel, scale=math.sqrt(gain / fan_in))
        y = self.op("Conv", x, w, self.draw(channels, scale=0.1), kernel_shape=kernel, strides=[stride] * 2, group=groups, dilations=[dilation] * 2,
                    pads=pads)
        self.channels[y] = channels
        return self.act(y, act)

    def act(self, x, kind):
        if kind is None:
            return x
        if kind == "Swish":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "Relu6":
            return self.op("Clip", x, self.constant(0.0), self.constant(6.0))
        if kind == "Gelu":  # opset 17 has no Gelu: the form that exporters write
            halves = self.op("Erf", self.op("Div", x, self.constant(math.sqrt(2))))
            return self.op("Mul", self.op("Mul", x, self.op("Add", halves, self.constant(1.0))), self.constant(0.5))
        return self.op(kind, x)

    def pool(self, x, kind, kernel=3, stride=2, pad=None, ceil=0):
        pad = (kernel - 1) // 2 if pad is None else pad
        return self.op(f"{kind}Pool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, ceil_mode=ceil)

    def concat(self, *parts):
        y = self.op("Concat", *parts, axis=1)
        self.channels[y] = sum(self.channels[part] for part in parts)
        return y

    def linear(self, x, inner, outer, act=None):
        y = self.op("Add", self.op("MatMul", x, self.draw(inner, outer, scale=1 / math.sqrt(inner))), self.draw(outer, scale=0.1))
        return self.act(y, act)

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.constant(shape, numpy.int64))

    def classifier(self, x, classes=1000):
        return self.linear(self.op("Flatten", self.op("GlobalAveragePool", x), axis=1), self.channels[x], classes)

    def norm(self, x, width):
        return self.op("LayerNormalization", x, self.constant(numpy.ones(width)), self.constant(numpy.zeros(width)), axis=-1, epsilon=1e-5)

    def finish(self, *outputs):
        named = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, named, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        return model


def vgg19():
    """Simonyan and Zisserman 2014, configuration E, without the three linear layers' dropout."""
    net = Net("vgg19", [1, 3, 224, 224])
    x = "input"
    for channels, layers in [(64, 2), (128, 2), (256, 4), (512, 4), (512, 4)]:
        for _ in range(layers):
            x = net.conv(x, channels, 3)
        x = net.pool(x, "Max", 2, 2, 0)
    x = net.linear(net.op("Flatten", x, axis=1), 512 * 49, 4096, "Relu")
    return net.finish(net.linear(net.linear(x, 4096, 4096, "Relu"), 4096, 1000))


def googlenet():
    """Szegedy et al. 2014."""
    net = Net("googlenet", [1, 3, 224, 224])
    x = net.pool(net.conv("input", 64, 7, 2), "Max", ceil=1, pad=0)
    x = net.pool(net.conv(net.conv(x, 64), 192, 3), "Max", ceil=1, pad=0)
    blocks = [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None, (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
              (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
              (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)]
    for block in blocks:
        if block is None:
            x = net.pool(x, "Max", ceil=1, pad=0)
            continue
        one, three_in, three, five_in, five, pooled = block
        x = net.concat(net.conv(x, one), net.conv(net.conv(x, three_in), three, 3), net.conv(net.conv(x, five_in), five, 5),
                       net.conv(net.pool(x, "Max", 3, 1), pooled))
    return net.finish(net.classifier(x))


def nasnet_cells():
    """Zoph et al. 2018, figure 4: NASNet-A at 28 x 28, one reduction cell between two pairs of normal cells."""
    net = Net("nasnet_cells", [1, 96, 28, 28])

    def separable(x, channels, kernel, stride=1):
        for step in (stride, 1):
            x = net.act(x, "Relu")
            x = net.conv(x, net.channels[x], kernel, step, groups=net.channels[x], act=None)
            x = net.conv(x, channels, act=None, gain=1.0)
        return x

    def squeeze(x, channels, stride=1):
        return net.conv(net.act(x, "Relu"), channels, 1, stride, act=None, pads=[0] * 4)

    def normal(before, x, channels, shrink):
        p, h = squeeze(before, channels, 2 if shrink else 1), squeeze(x, channels)
        average = [net.pool(v, "Average", 3, 1) for v in (h, p, p)]
        parts = [net.op("Add", separable(h, channels, 3), h), net.op("Add", separable(p, channels, 3), separable(h, channels, 5)),
                 net.op("Add", average[0], p), net.op("Add", average[1], average[2]),
                 net.op("Add", separable(p, channels, 5), separable(p, channels, 3))]
        return x, net.concat(p, *parts)

    def reduction(before, x, channels):
        p, h = squeeze(before, channels), squeeze(x, channels)
        one = net.op("Add", separable(p, channels, 7, 2), separable(h, channels, 5, 2))
        two = net.op("Add", net.pool(h, "Max"), separable(p, channels, 7, 2))
        three = net.op("Add", net.pool(h, "Average"), separable(p, channels, 5, 2))
        four = net.op("Add", net.pool(h, "Max"), separable(one, channels, 3))
        return x, net.concat(two, three, four, net.op("Add", net.pool(one, "Average", 3, 1), two))

    before, x = normal("input", "input", 44, False)
    before, x = normal(before, x, 44, False)
    before, x = reduction(before, x, 88)
    before, x = normal(before, x, 88, True)
    _, x = normal(before, x, 88, False)
    return net.finish(net.classifier(net.act(x, "Relu")))


def mobilenet_v2():
    """Sandler et al. 2018."""
    net = Net("mobilenet_v2", [1, 3, 224, 224])
    x = net.conv("input", 32, 3, 2, act="Relu6")
    for expand, channels, layers, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for layer in range(layers):
            wide = net.channels[x] * expand
            y = net.conv(x, wide, act="Relu6") if expand > 1 else x
            y = net.conv(y, wide, 3, stride if layer == 0 else 1, groups=wide, act="Relu6")
            y = net.conv(y, channels, act=None, gain=1.0)
            x = net.op("Add", x, y) if layer else y
    return net.finish(net.classifier(net.conv(x, 1280, act="Relu6")))


def shufflenet_v2():
    """Ma et al. 2018, width 1."""
    net = Net("shufflenet_v2", [1, 3, 224, 224])
    x, size = net.pool(net.conv("input", 24, 3, 2), "Max"), 56

    def branch(x, half, stride):
        x = net.conv(net.conv(x, half), half, 3, stride, groups=half, act=None)
        return net.conv(x, half)

    for channels, layers in [(116, 4), (232, 8), (464, 4)]:
        half, size = channels // 2, size // 2
        for layer in range(layers):
            if layer == 0:
                left = net.conv(net.conv(x, net.channels[x], 3, 2, groups=net.channels[x], act=None), half)
                right = branch(x, half, 2)
            else:
                left, right = net.op("Split", x, net.constant([half, half], numpy.int64), outputs=2, axis=1)
                net.channels[left] = net.channels[right] = half
                right = branch(right, half, 1)
            x = net.op("Transpose", net.reshape(net.concat(left, right), 1, 2, half, size, size), perm=[0, 2, 1, 3, 4])
            x = net.reshape(x, 1, channels, size, size)
            net.channels[x] = channels
    return net.finish(net.classifier(net.conv(x, 1024)))


def efficientnet_b0():
    """Tan and Le 2019."""
    net = Net("efficientnet_b0", [1, 3, 224, 224])
    x = net.conv("input", 32, 3, 2, act="Swish")
    for expand, channels, layers, stride, kernel in [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                                                     (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]:
        for layer in range(layers):
            own = net.channels[x]
            y = net.conv(x, own * expand, act="Swish") if expand > 1 else x
            y = net.conv(y, own * expand, kernel, stride if layer == 0 else 1, groups=own * expand, act="Swish")
            gate = net.conv(net.op("GlobalAveragePool", y), max(1, own // 4), act="Swish")
            y = net.op("Mul", y, net.conv(gate, own * expand, act="Sigmoid"))
            y = net.conv(y, channels, act=None, gain=1.0)
            x = net.op("Add", x, y) if layer else y
    return net.finish(net.classifier(net.conv(x, 1280, act="Swish")))


def convnext_tiny():
    """Liu et al. 2022."""
    net = Net("convnext_tiny", [1, 3, 224, 224])

    def channels_last(x, work):
        y = work(net.op("Transpose", x, perm=[0, 2, 3, 1]))
        y = net.op("Transpose", y, perm=[0, 3, 1, 2])
        net.channels[y] = net.channels[x]
        return y

    x = channels_last(net.conv("input", 96, 4, 4, act=None, pads=[0] * 4), lambda v: net.norm(v, 96))
    for stage, (width, blocks) in enumerate([(96, 3), (192, 3), (384, 9), (768, 3)]):
        if stage:
            x = net.conv(channels_last(x, lambda v, own=net.channels[x]: net.norm(v, own)), width, 2, 2, act=None, pads=[0] * 4)
        for _ in range(blocks):
            def inside(v, width=width):
                v = net.linear(net.linear(net.norm(v, width), width, 4 * width, "Gelu"), 4 * width, width)
                return net.op("Mul", v, net.draw(width, scale=0.5))
            x = net.op("Add", x, channels_last(net.conv(x, width, 7, groups=width, act=None, gain=1.0), inside))
    return net.finish(net.classifier(x))


def deeplab_head():
    """Chen et al. 2017: the atrous spatial pyramid of DeepLab v3 with its decoder, on features of 28 x 28."""
    net = Net("deeplab_head", [1, 512, 28, 28])
    parts = [net.conv("input", 256)] + [net.conv("input", 256, 3, dilation=d) for d in (6, 12, 18)]
    x = net.conv(net.conv(net.concat(*parts), 256), 256, 3)
    x = net.conv(x, 21, act=None)
    return net.finish(net.op("Resize", x, "", net.constant([1, 1, 8, 8]), mode="linear", coordinate_transformation_mode="half_pixel"))


def dcgan():
    """Radford et al. 2015: the generator, batch 1."""
    net = Net("dcgan", [1, 100, 1, 1])
    x = "input"
    for step, channels in enumerate([512, 256, 128, 64, 3]):
        own = net.channels[x]
        pads, stride = ([0] * 4, 1) if step == 0 else ([1] * 4, 2)
        w = net.draw(own, channels, 4, 4, scale=math.sqrt(1 / (4 * own)))
        y = net.op("ConvTranspose", x, w, net.draw(channels, scale=0.1), kernel_shape=[4, 4], strides=[stride] * 2, pads=pads)
        net.channels[y] = channels
        x = net.act(y, "Tanh" if step == 4 else "Relu")
    return net.finish(x)


def espcn():
    """Shi et al. 2016: super-resolution by 3 of a 224 x 224 image."""
    net = Net("espcn", [1, 1, 224, 224])
    x = net.conv(net.conv(net.conv("input", 64, 5), 64, 3), 32, 3)
    return net.finish(net.op("DepthToSpace", net.conv(x, 9, 3, act=None, gain=1.0), blocksize=3, mode="CRD"))


def attention(net, x, tokens, width, heads, causal):
    parts = net.op("Split", net.linear(x, width, 3 * width), net.constant([width] * 3, numpy.int64), outputs=3, axis=2)
    depth = width // heads
    q, k, v = [net.op("Transpose", net.reshape(part, 1, tokens, heads, depth), perm=perm)
               for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))]
    scores = net.op("Mul", net.op("MatMul", q, k), net.constant(1 / math.sqrt(depth)))
    if causal:
        scores = net.op("Add", scores, net.constant(numpy.triu(numpy.full((tokens, tokens), -1e4), 1)))
    mixed = net.op("Transpose", net.op("MatMul", net.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return net.linear(net.reshape(mixed, 1, tokens, width), width, width)


def encoder(net, x, layers, tokens, width, heads, causal=False):
    for _ in range(layers):
        x = net.op("Add", x, attention(net, net.norm(x, width), tokens, width, heads, causal))
        x = net.op("Add", x, net.linear(net.linear(net.norm(x, width), width, 4 * width, "Gelu"), 4 * width, width))
    return net.norm(x, width)


def vit_small():
    """Dosovitskiy et al. 2021: patches of 16, width 384, 12 layers, 6 heads."""
    net = Net("vit_small", [1, 3, 224, 224])
    x = net.op("Transpose", net.reshape(net.conv("input", 384, 16, 16, act=None, pads=[0] * 4), 1, 384, 196), perm=[0, 2, 1])
    x = net.op("Add", net.op("Concat", net.draw(1, 1, 384, scale=1), x, axis=1), net.draw(1, 197, 384, scale=0.1))
    x = encoder(net, x, 12, 197, 384, 6)
    return net.finish(net.linear(net.op("Gather", x, net.constant(0, numpy.int64), axis=1), 384, 1000))


def gpt2_6():
    """Radford et al. 2019: six layers of GPT-2 (width 768, 12 heads) over 128 embedded tokens."""
    net = Net("gpt2_6", [1, 128, 768])
    return net.finish(encoder(net, "input", 6, 128, 768, 12, causal=True))


ALL = [vgg19, googlenet, nasnet_cells, mobilenet_v2, shufflenet_v2, efficientnet_b0, convnext_tiny, deeplab_head, dcgan, espcn, vit_small, gpt2_6]
