"""The backend of torch.compile with a stand-in of PyTorch: Dynamo's and the exporter's part. usage: test_torch.py LIBMENDEL EXAMPLES

The real PyTorch is a download of 3 GB: scripts/soak torch-models."""
import contextlib
import os
import sys
import types
import unittest
import warnings

os.environ["MENDEL_LIBRARY"] = sys.argv[1]
sys.path.insert(0, sys.argv[2])
sys.dont_write_bytecode = True

import numpy

from onnx_writer import Net


class Tensor(numpy.ndarray):
    """An array with what the backend asks of a tensor."""

    requires_grad = False
    _version = 0
    place = "cpu"

    def __array_finalize__(self, other):
        self.place = getattr(other, "place", "cpu")

    @property
    def device(self):
        return types.SimpleNamespace(type=self.place)

    unversioned = False

    def is_inference(self):
        return self.unversioned

    def clone(self):
        return self.copy()

    def data_ptr(self):
        return self.ctypes.data

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=self.data_ptr)

    def detach(self):
        return self

    def contiguous(self):
        return numpy.ascontiguousarray(self).view(Tensor)

    def numpy(self):
        return numpy.asarray(self)

    def numel(self):
        return self.size

    def element_size(self):
        return self.itemsize

    def is_floating_point(self):
        return self.dtype.kind == "f"

    def double(self):
        return self.astype("float64")

    def abs(self):
        return numpy.abs(self)

    def nan_to_num(self, *_):
        return numpy.nan_to_num(self)


class Parameter(Tensor):
    pass


class Module:
    def __init__(self):
        self._buffers = {}

    def register_buffer(self, name, value):
        self._buffers[name] = value
        setattr(self, name, value)

    def buffers(self):
        return list(self._buffers.values())

    def eval(self):
        return self


def tensor(values, kind=Tensor):
    return numpy.asarray(values, "float32").view(kind)


class Graph:
    """relu(x + weight), as Dynamo passes it: the weight is an input."""

    def __init__(self, compute=lambda x, weight: numpy.maximum(x + weight, 0).view(Tensor)):
        self.compute, self.calls = compute, 0

    def __call__(self, *inputs):
        self.calls += 1
        return (self.compute(*inputs),)

    forward = __call__

    def parameters(self):
        return []

    buffers = parameters


class Exporter:
    """Writes Graph's model for the shapes at hand; `error`, if set, is raised instead."""

    def __init__(self):
        self.exports, self.error, self.factor = [], None, 1

    def export(self, module, inputs, file, **options):
        if self.error:
            raise self.error
        shape = list(inputs[0].shape)
        self.exports.append(shape)
        weight = module.buffers()[0]
        net = Net(seed=1)
        constant = net.constant(list(weight.shape), [float(v) * self.factor for v in weight.ravel()])
        net.op("Relu", net.op("Add", options["input_names"][0], constant), name="y")
        content = net.model("graph", {options["input_names"][0]: shape}, {"y": shape})
        return types.SimpleNamespace(model_proto=types.SimpleNamespace(SerializeToString=lambda: content))


def fake_torch(exporter):
    torch = types.ModuleType("torch")
    torch.Tensor = Tensor
    torch.nn = types.SimpleNamespace(Parameter=Parameter, Module=Module)
    torch.grad = False
    torch.is_grad_enabled = lambda: torch.grad
    torch.get_num_threads = lambda: 1
    torch.equal = numpy.array_equal
    torch.no_grad = contextlib.nullcontext
    torch.bfloat16 = "torch.bfloat16"
    torch.from_numpy = lambda array: array.view(Tensor)
    torch._dynamo = types.SimpleNamespace(disable=lambda function: function)
    torch.onnx = types.SimpleNamespace(export=exporter.export)
    return torch


class TorchTest(unittest.TestCase):
    def setUp(self):
        self.exporter = Exporter()
        self.torch = sys.modules["torch"] = fake_torch(self.exporter)
        self.weight = tensor([1, -1, 0.5], Parameter)
        from mendel import _torch
        self.module = _torch
        _torch._DTYPES = ("float32",)
        watch = warnings.catch_warnings(record=True)
        self.seen = watch.__enter__()
        warnings.simplefilter("always")
        self.addCleanup(watch.__exit__, None, None, None)
        self.addCleanup(sys.modules.pop, "torch")

    def compiled(self, graph, x, **options):
        return self.module.backend(graph, [x, self.weight], **options)

    def messages(self):
        return [str(warning.message) for warning in self.seen]

    def run_rows(self, compiled, rows):
        x = tensor(numpy.random.default_rng(rows).standard_normal([rows, 3]))
        numpy.testing.assert_allclose(compiled(x, self.weight)[0], numpy.maximum(x + self.weight, 0), rtol=1e-6)

    def test_a_plan_for_every_shape(self):
        graph = Graph()
        compiled = self.compiled(graph, tensor([[0, 0, 0]]))
        for rows in (2, 2, 5, 2, 5, 5):
            self.run_rows(compiled, rows)
        self.assertEqual(self.exporter.exports, [[2, 3], [5, 3]])
        self.assertEqual(graph.calls, 2)  # the first time of each shape is PyTorch's own
        self.assertEqual(self.messages(), [])

    def test_a_changed_weight_makes_the_plan_anew(self):
        compiled = self.compiled(Graph(), tensor([[0, 0, 0]]))
        self.run_rows(compiled, 2)
        self.weight *= 3
        self.weight._version += 1
        for _ in range(3):
            self.run_rows(compiled, 2)
        self.assertEqual(len(self.exporter.exports), 2)
        self.weight = tensor([4, 4, 4], Parameter)
        for _ in range(3):
            self.run_rows(compiled, 2)
        self.assertEqual(len(self.exporter.exports), 3)

    def test_the_operator_of_a_fallback_is_named_once(self):
        self.exporter.error = RuntimeError("No ONNX function found for <OpOverload(op='aten._linalg_svd', overload='default')>. More")
        graph = Graph()
        compiled = self.compiled(graph, tensor([[0, 0, 0]]))
        for rows in (2, 2, 3):
            self.run_rows(compiled, rows)
        self.assertEqual(graph.calls, 3)
        self.assertEqual(len(self.messages()), 1)
        self.assertIn("operator 'aten._linalg_svd' has no form in ONNX; this graph runs in PyTorch", self.messages()[0])

    def test_an_export_with_other_numbers_is_not_used(self):
        self.exporter.factor = 2
        compiled = self.compiled(Graph(), tensor([[0, 0, 0]]))
        for _ in range(2):
            self.run_rows(compiled, 2)
        self.assertEqual(len(self.messages()), 1)
        self.assertIn("output 0 differs from PyTorch's by", self.messages()[0])

    def test_a_graph_that_changes_its_input_stays_with_pytorch(self):
        def change(x, weight):
            x += weight
            x._version += 1
            return (2 * x).view(Tensor)

        compiled = self.compiled(Graph(change), tensor([[0, 0, 0]]))
        x = tensor([[0, 0, 0]])
        for _ in range(3):
            compiled(x, self.weight)
        numpy.testing.assert_array_equal(x, [[3, -3, 1.5]])
        self.assertIn("changes one of its inputs in place", self.messages()[0])

    def test_changes_are_seen_without_versions(self):
        def change(x, weight):
            x += weight
            return (2 * x).view(Tensor)

        compiled = self.compiled(Graph(change), tensor([[0, 0, 0]]))
        x = tensor([[0, 0, 0]])
        x.unversioned = True
        for _ in range(3):
            compiled(x, self.weight)
        numpy.testing.assert_array_equal(x, [[3, -3, 1.5]])
        self.assertIn("changes one of its inputs in place", self.messages()[0])
        self.weight.unversioned = True
        self.run_rows(self.compiled(Graph(), x), 2)
        self.assertIn("a weight was made under torch.inference_mode()", self.messages()[1])

    def test_a_view_of_an_input_stays_one(self):
        compiled = self.compiled(Graph(lambda x, weight: x), tensor([[0, 0, 0]]))
        x = tensor([[1, 2, 3]])
        for _ in range(2):
            self.assertIs(compiled(x, self.weight)[0], x)
        self.assertIn("view of an input", self.messages()[0])

    def test_inputs_that_no_plan_takes_are_named(self):
        compiled = self.compiled(Graph(), tensor([[0, 0, 0]]))
        compiled(numpy.zeros([1, 3], "float64").view(Tensor), self.weight)
        self.assertIn("an input has the dtype float64", self.messages()[0])
        elsewhere = tensor([[0, 0, 0]])
        elsewhere.place = "cuda"
        self.compiled(Graph(), elsewhere)(elsewhere, self.weight)
        self.assertIn("plans of this backend run on 'cpu'", self.messages()[1])

    def test_it_is_for_inference(self):
        self.torch.grad = True
        self.weight.requires_grad = True
        graph = Graph()
        compiled = self.compiled(graph, tensor([[0, 0, 0]]))
        self.run_rows(compiled, 2)
        self.assertEqual((graph.calls, self.exporter.exports), (1, []))
        self.assertIn("for inference only", self.messages()[0])

    def test_an_unknown_option_lists_the_known_ones(self):
        with self.assertRaisesRegex(ValueError, "no option 'budgt' .the options are 'budget'"):
            self.compiled(Graph(), tensor([[0, 0, 0]]), options={"budgt": 3})

    def test_a_search_is_an_option(self):
        compiled = self.compiled(Graph(), tensor([[0, 0, 0]]), options={"budget": 1})
        for _ in range(2):
            self.run_rows(compiled, 2)
        self.assertEqual(self.messages(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
