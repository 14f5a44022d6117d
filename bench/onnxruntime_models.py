"""The twelve models of bench/onnxruntime_provider: five networks as they are or changed, and small ones made here, with random weights."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
RANDOM = np.random.default_rng(7)


def weight(name, *shape, scale=None):
    values = RANDOM.standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values * np.float32(scale or 1 / np.sqrt(shape[0])), name)


def integers(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, constants):
    graph = helper.make_graph(nodes, "model", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])
    model.ir_version = 8
    return model


def insert_after(model, operator, places, make):
    """Nodes make(k, from, to) between the k-th node of this operator, for k in `places`, and its readers."""
    nodes, k = [], 0
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type != operator:
            continue
        k += 1
        if k in places:
            name = node.output[0]
            node.output[0] = f"{name}_before"
            nodes += make(k, f"{name}_before", name)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    if MICROSOFT not in [opset.domain for opset in model.opset_import]:
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return model


def resnet18_fusedgemm(networks):
    model = onnx.load(networks / "resnet18.onnx")
    sizes = {3: 56, 5: 56, 7: 28, 9: 28}

    def make(k, before, after):
        model.graph.initializer.extend([integers(f"flat{k}", [-1, sizes[k]]), integers(f"back{k}", [1, -1, sizes[k], sizes[k]]),
                                        numpy_helper.from_array(np.eye(sizes[k], dtype=np.float32), f"eye{k}")])
        return [helper.make_node("Reshape", [before, f"flat{k}"], [f"{after}_flat"]),
                helper.make_node("FusedGemm", [f"{after}_flat", f"eye{k}"], [f"{after}_gemm"], domain=MICROSOFT, activation="Relu"),
                helper.make_node("Reshape", [f"{after}_gemm", f"back{k}"], [after])]
    return insert_after(model, "Relu", sizes, make)


def unet_nonzero(networks):
    model = onnx.load(networks / "unet.onnx")
    name = model.graph.output[0].name
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    model.graph.node.extend([helper.make_node("AveragePool", [name], ["pooled"], kernel_shape=[32, 32], strides=[32, 32]),
                             helper.make_node("Greater", ["pooled", "zero"], ["mask"]), helper.make_node("NonZero", ["mask"], ["places"])])
    model.graph.output.append(value("places", [4, "found"], TensorProto.INT64))
    return model


def bert6_attention(networks):
    model = onnx.load(networks / "bert6.onnx")
    return insert_after(model, "LayerNormalization", {4, 8}, lambda k, before, after: [
        helper.make_node("MultiHeadAttention", [before, before, before], [after], domain=MICROSOFT, num_heads=12)])


def squeezenet_cdist(networks):
    model = onnx.load(networks / "squeezenet1_1.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    name = model.graph.output[0].name
    model.graph.initializer.append(weight("prototypes", 50, 1000))
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    model.graph.node.append(helper.make_node("CDist", [name, "prototypes"], ["distances"], domain=MICROSOFT, metric="euclidean"))
    del model.graph.output[:]
    model.graph.output.append(value("distances", [1, 50]))
    return model


def mlp_4bit(_networks):
    nodes, constants, last = [], [], "x"
    for k in range(3):
        constants += [weight(f"w{k}", 1024, 1024), weight(f"scale{k}", 1024 * 32, scale=0.01),
                      numpy_helper.from_array(RANDOM.integers(0, 256, (1024, 32, 16), np.uint8), f"bits{k}")]
        nodes += [helper.make_node("MatMul", [last, f"w{k}"], [f"a{k}"]), helper.make_node("Relu", [f"a{k}"], [f"b{k}"]),
                  helper.make_node("MatMulNBits", [f"b{k}", f"bits{k}", f"scale{k}"], [f"c{k}"], domain=MICROSOFT, K=1024, N=1024, bits=4,
                                   block_size=32), helper.make_node("Tanh", [f"c{k}"], [f"d{k}"])]
        last = f"d{k}"
    return model_of(nodes, [value("x", [64, 1024])], [value(last, [64, 1024])], constants)


def embedding_unique(_networks):
    nodes = [helper.make_node("Unique", ["ids"], ["unique", "", "inverse", ""]), helper.make_node("Gather", ["table", "unique"], ["rows"]),
             helper.make_node("MatMul", ["rows", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "w1"], ["c"]), helper.make_node("Gather", ["c", "inverse"], ["y"])]
    return model_of(nodes, [value("ids", [256], TensorProto.INT64)], [value("y", [256, 256])],
                    [weight("table", 1000, 256), weight("w0", 256, 2048), weight("w1", 2048, 256)])


def squeezenet_batch(networks):
    return onnx.load(networks / "squeezenet1_1.onnx")


def encoder_sequence(_networks):
    nodes, constants, last = [], [], "x"
    for k in range(4):
        constants += [weight(f"{name}{k}", rows, columns) for name, rows, columns in
                      (("q", 256, 256), ("k", 256, 256), ("v", 256, 256), ("up", 256, 1024), ("down", 1024, 256))]
        nodes += [helper.make_node("MatMul", [last, f"q{k}"], [f"Q{k}"]), helper.make_node("MatMul", [last, f"k{k}"], [f"K{k}"]),
                  helper.make_node("MatMul", [last, f"v{k}"], [f"V{k}"]), helper.make_node("Transpose", [f"K{k}"], [f"T{k}"], perm=[0, 2, 1]),
                  helper.make_node("MatMul", [f"Q{k}", f"T{k}"], [f"S{k}"]), helper.make_node("Softmax", [f"S{k}"], [f"P{k}"], axis=-1),
                  helper.make_node("MatMul", [f"P{k}", f"V{k}"], [f"A{k}"]), helper.make_node("Add", [f"A{k}", last], [f"B{k}"]),
                  helper.make_node("MatMul", [f"B{k}", f"up{k}"], [f"U{k}"]), helper.make_node("Relu", [f"U{k}"], [f"R{k}"]),
                  helper.make_node("MatMul", [f"R{k}", f"down{k}"], [f"D{k}"]), helper.make_node("Tanh", [f"D{k}"], [f"Y{k}"])]
        last = f"Y{k}"
    return model_of(nodes, [value("x", [1, "sequence", 256])], [value(last, [1, "sequence", 256])], constants)


def squeezenet_int8(networks):
    import tempfile

    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Samples(CalibrationDataReader):
        def __init__(self):
            self.left = [{"input": RANDOM.random((1, 3, 224, 224), np.float32)} for _ in range(4)]

        def get_next(self):
            return self.left.pop() if self.left else None

    model = onnx.load(networks / "squeezenet1_1.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    model.graph.input[0].name, old = "input", model.graph.input[0].name
    for node in model.graph.node:
        for k, name in enumerate(node.input):
            node.input[k] = "input" if name == old else name
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/f32.onnx")
        quantize_static(f"{folder}/f32.onnx", f"{folder}/int8.onnx", Samples(), quant_format=QuantFormat.QDQ)
        return onnx.load(f"{folder}/int8.onnx")


def conv_if(_networks):
    def conv(k, source, target):
        return helper.make_node("Conv", [source, f"w{k}"], [target], pads=[1, 1, 1, 1])
    branches = {name: helper.make_graph([conv(k, "b", f"branch{k}"), helper.make_node("Relu", [f"branch{k}"], [f"taken{k}"])], name, [],
                                        [value(f"taken{k}", [1, 64, 56, 56])]) for k, name in ((2, "then_branch"), (3, "else_branch"))}
    nodes = [conv(0, "x", "a"), helper.make_node("Relu", ["a"], ["a1"]), conv(1, "a1", "b"), helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
             helper.make_node("Greater", ["sum", "zero"], ["positive"]), helper.make_node("If", ["positive"], ["c"], **branches),
             conv(4, "c", "d"), helper.make_node("Relu", ["d"], ["y"])]
    constants = [weight("w0", 64, 3, 3, 3, scale=0.1), numpy_helper.from_array(np.float32(0), "zero")]
    constants += [weight(f"w{k}", 64, 64, 3, 3, scale=0.05) for k in (1, 2, 3, 4)]
    return model_of(nodes, [value("x", [1, 3, 56, 56])], [value("y", [1, 64, 56, 56])], constants)


def unet(networks):
    return onnx.load(networks / "unet.onnx")


def nasrnn(networks):
    return onnx.load(networks / "nasrnn.onnx")


UNSUPPORTED, SYMBOLIC, INT8, BRANCHES, WHOLE = "unsupported", "symbolic", "int8", "If", "whole"
ALL = {resnet18_fusedgemm: UNSUPPORTED, unet_nonzero: UNSUPPORTED, bert6_attention: UNSUPPORTED, squeezenet_cdist: UNSUPPORTED,
       mlp_4bit: UNSUPPORTED, embedding_unique: UNSUPPORTED, squeezenet_batch: SYMBOLIC, encoder_sequence: SYMBOLIC, squeezenet_int8: INT8,
       conv_if: BRANCHES, unet: WHOLE, nasrnn: WHOLE}
SIZES = {"N": 2, "sequence": 128}  # of symbolic dimensions


def inputs_of(session, seed=0):
    """Random inputs of a session of ONNX Runtime."""
    random = np.random.default_rng(seed)
    feed = {}
    for item in session.get_inputs():
        shape = [size if isinstance(size, int) else SIZES.get(size, 1) for size in item.shape]
        feed[item.name] = random.integers(0, 1000, shape) if item.type == "tensor(int64)" else random.random(shape, np.float32) - np.float32(0.4)
    return feed
