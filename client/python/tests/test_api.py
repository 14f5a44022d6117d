"""Optimizing, verifying and sessions in this process. usage: test_api.py LIBMENDEL|installed EXAMPLES"""
import os
import pathlib
import runpy
import signal
import sys
import tempfile
import threading
import time
import unittest
import warnings

LIBRARY, EXAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])
if LIBRARY != "installed":
    os.environ["MENDEL_LIBRARY"] = LIBRARY
sys.path.insert(0, str(EXAMPLES))
sys.dont_write_bytecode = True

import numpy

import mendel
from onnx_writer import Net

CAMERA = EXAMPLES / "camera.onnx"
PAIR = runpy.run_path(str(EXAMPLES / "make_pair"), run_name="pair")["model"]
FOLDER = tempfile.TemporaryDirectory(prefix="mendel-test-")
CACHE = os.path.join(FOLDER.name, "cache")


def symbolic_model():
    """relu(x + c) for x of shape [batch, 3, width]."""
    net = Net(seed=5)
    net.op("Relu", net.op("Add", "x", net.draw([3, 1], -1, 1)), name="y")
    return net.model("symbolic", {"x": ["batch", 3, "width"]}, {"y": ["batch", 3, "width"]})


def random_input(info, seed=1):
    shape = [size if isinstance(size, int) else 2 for size in info.shape]
    return numpy.random.default_rng(seed).standard_normal(shape).astype("float32")


class OptimizeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.events = []
        cls.plan = mendel.optimize(CAMERA, budget=3, threads=1, cache=CACHE, progress=cls.events.append)

    def test_the_plan_computes_what_the_model_computes(self):
        session = mendel.InferenceSession(str(CAMERA))
        value = session.get_inputs()[0]
        x = random_input(value)
        expected = session.run(None, {value.name: x})
        results = self.plan.run({value.name: x})
        self.assertEqual(list(results), [output.name for output in session.get_outputs()])
        self.assertTrue(numpy.any(expected[0] != 0))
        for name, want in zip(results, expected):
            numpy.testing.assert_allclose(results[name], want, rtol=1e-3, atol=1e-3)

    def test_what_a_plan_reports(self):
        self.assertLess(self.plan.certificate.bound_log2, -80)
        self.assertGreater(self.plan.baseline_ms, 0)
        self.assertAlmostEqual(self.plan.speedup, self.plan.baseline_ms / self.plan.plan_ms, places=6)
        self.assertEqual(len(self.plan.mutants), self.plan.report["search"]["chosen"])
        self.assertIn("camera.onnx", repr(self.plan))
        phases = {event["phase"] for event in self.events}
        self.assertLessEqual({"import", "search"}, phases)

    def test_save_load_export_and_verify(self):
        path, exported = os.path.join(FOLDER.name, "camera.plan"), os.path.join(FOLDER.name, "faster.onnx")
        self.plan.save(path)
        again = mendel.Plan.load(path)
        self.assertEqual(again.facts, self.plan.facts)
        self.assertIsNone(again.report)
        value = again.inputs[0]
        x = random_input(value)
        first = self.plan.run({value.name: x})
        for other in (again.run({value.name: x}), mendel.load_plan(path).run({value.name: x})):
            for name in first:
                numpy.testing.assert_array_equal(other[name], first[name])
        session = mendel.InferenceSession(path)
        numpy.testing.assert_array_equal(session.run(None, {value.name: x})[0], next(iter(first.values())))
        self.plan.export_onnx(exported)
        self.assertTrue(mendel.verify(CAMERA, exported))
        self.assertTrue(mendel.verify(CAMERA, self.plan))

    def test_a_bundle_runs_the_member_of_its_inputs(self):
        plan = mendel.optimize(symbolic_model(), shapes=[{"x": (1, 3, 4)}, {"x": (2, 3, 5)}], budget=0, cache=CACHE)
        self.assertEqual([member["inputs"] for member in plan.facts], [{"x": [1, 3, 4]}, {"x": [2, 3, 5]}])
        for shape in ((2, 3, 5), (1, 3, 4), (2, 3, 5)):
            x = numpy.random.default_rng(3).standard_normal(shape).astype("float32")
            y = plan.run({"x": x})["y"]
            self.assertEqual(y.shape, shape)
            self.assertTrue(numpy.all(y >= 0) and numpy.any(y > 0))
        with self.assertRaisesRegex(mendel.Error, "1x3x4"):
            plan.run({"x": numpy.zeros((7, 3, 4), "float32")})

    def test_mistakes_are_the_sentences_of_the_command(self):
        with self.assertRaisesRegex(mendel.NotFound, "none.onnx"):
            mendel.optimize("none.onnx")
        with self.assertRaises(FileNotFoundError):
            mendel.Plan.load("none.plan")
        with self.assertRaisesRegex(mendel.InvalidArgument, "no-such"):
            mendel.optimize(CAMERA, no_such=1)
        with self.assertRaisesRegex(mendel.InvalidArgument, "there is no rule 'x'"):
            mendel.optimize(CAMERA, disable=["x"])
        with self.assertRaises(mendel.InvalidArgument):
            mendel.optimize(b"garbage")
        with self.assertRaises(TypeError):
            mendel.optimize(3)
        with self.assertRaisesRegex(mendel.InvalidArgument, "no input 'z'"):
            self.plan.run({"z": numpy.zeros(3)})

    def test_ctrl_c_keeps_the_best_plan(self):
        def interrupt(event):
            if event["phase"] == "search" and not interrupted:
                interrupted.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
        interrupted = []
        fresh = os.path.join(FOLDER.name, "fresh")  # nothing can be replayed
        plan = mendel.optimize(CAMERA, budget=300, threads=1, cache=fresh, progress=interrupt)
        self.assertLess(time.monotonic() - interrupted[0], 120)
        self.assertEqual(plan.report["search"]["stop_reason"], "interrupted")
        self.assertLess(plan.certificate.bound_log2, -80)

    def test_an_exception_of_the_progress_function_ends_the_search(self):
        def fail(event):
            if event["phase"] == "search":
                raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            mendel.optimize(CAMERA, budget=300, threads=1, cache=CACHE, progress=fail)


class VerifyTest(unittest.TestCase):
    def test_a_partial_pair_has_exact_regions_and_witnesses(self):
        verdict = mendel.verify(PAIR(False), PAIR(True))
        self.assertEqual(verdict.verdict, "partial")
        self.assertFalse(verdict)
        mask = verdict.regions["features"].mask()
        border = numpy.ones((1, 8, 16, 16), bool)
        border[:, :, 1:-1, 1:-1] = False
        numpy.testing.assert_array_equal(mask, border)
        self.assertEqual(verdict.outputs["features"].wrong_elements, int(border.sum()))
        witness = verdict.witness
        self.assertTrue(mask[witness.element])
        self.assertNotEqual(witness.value_a, witness.value_b)
        image = witness.inputs["image"].astype("float32")
        outputs = [mendel.InferenceSession(PAIR(folded)).run(["features"], {"image": image})[0] for folded in (False, True)]
        for output, value in zip(outputs, (witness.value_a, witness.value_b)):
            self.assertAlmostEqual(float(output[witness.element]), value, delta=1e-3 * max(1.0, abs(value)))

    def test_options_and_mistakes(self):
        verdict = mendel.verify(PAIR(False), PAIR(True), regions=False, tests=2, seed=9)
        self.assertNotEqual(verdict.verdict, "equivalent")
        self.assertEqual(verdict.facts["seed"], 9)
        with self.assertRaisesRegex(mendel.InvalidArgument, "no output 'z'"):
            mendel.verify(PAIR(False), PAIR(True), outputs=["z"])
        with self.assertRaises(mendel.Error):
            mendel.verify(PAIR(False), CAMERA)


class SessionTest(unittest.TestCase):
    def test_symbolic_dimensions(self):
        options = mendel.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = mendel.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = mendel.InferenceSession(symbolic_model(), options, providers=["CPUExecutionProvider"])
        value = session.get_inputs()[0]
        self.assertEqual((value.name, value.type, value.shape), ("x", "tensor(float)", ["batch", 3, "width"]))
        self.assertEqual(session.get_outputs()[0].shape, ["batch", 3, "width"])
        self.assertEqual(session.get_modelmeta().graph_name, "symbolic")
        shift = session.run(None, {"x": numpy.full((1, 3, 1), 9, "float32")})[0].reshape(3, 1) - 9
        wrong = []

        def work(seed):
            rng = numpy.random.default_rng(seed)
            for _ in range(20):
                x = rng.standard_normal((int(rng.integers(1, 4)), 3, int(rng.integers(1, 9)))).astype("float32")
                if not numpy.allclose(session.run(["y"], {"x": x})[0], numpy.maximum(x + shift, 0), atol=1e-5):
                    wrong.append(x.shape)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        use = session.plan_cache()
        self.assertEqual(use["plans"], 16)
        self.assertEqual(use["made"] - use["dropped"], 16)
        self.assertEqual(use["hits"] + use["made"], 81)

    def test_shapes_that_do_not_fit_and_a_search_later(self):
        options = mendel.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("mendel.plans", "2")
        session = mendel.InferenceSession(symbolic_model(), options)
        run = lambda *shape: session.run(None, {"x": numpy.ones(shape, "float32")})[0]  # noqa: E731
        expected = run(2, 3, 4)
        with self.assertRaisesRegex(mendel.InvalidArgument, "x:2x5x4.*dimension 1 of input 'x' is 3, not 5"):
            run(2, 5, 4)
        with self.assertRaisesRegex(mendel.InvalidArgument, "input 'x' has rank 3, the given shape .* has 2"):
            run(2, 3)
        with self.assertRaisesRegex(mendel.InvalidArgument, "input 'x'.* is missing"):
            session.run(None, {})
        plan = session.optimize({"x": (2, 3, 4)}, budget=0, cache=CACHE)
        self.assertEqual(plan.facts[0]["inputs"], {"x": [2, 3, 4]})
        for width in range(5, 9):
            run(2, 3, width)
        numpy.testing.assert_allclose(run(2, 3, 4), expected, atol=1e-6)
        self.assertEqual(session.plan_cache(), {**session.plan_cache(), "plans": 2, "hits": 1, "made": 5, "dropped": 3})
        with self.assertRaisesRegex(mendel.InvalidArgument, "no symbolic dimensions"):
            mendel.InferenceSession(CAMERA).optimize({"image": (1, 3, 8, 8)})

    def test_binding_and_mistakes(self):
        session = mendel.InferenceSession(PAIR(False))
        x = random_input(session.get_inputs()[0])
        binding = session.io_binding()
        binding.bind_cpu_input("image", x)
        binding.bind_output("features")
        session.run_with_iobinding(binding)
        numpy.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], session.run(None, {"image": x})[0])
        with self.assertRaisesRegex(mendel.InvalidArgument, "no input 'z' .*'image'"):
            session.run(None, {"z": x})
        with self.assertRaisesRegex(mendel.InvalidArgument, "no output 'z' .*'features'"):
            session.run(["z"], {"image": x})
        with self.assertRaisesRegex(mendel.InvalidArgument, "float64"):
            session.run(None, {"image": x.astype("float64")})
        with self.assertRaises(mendel.NotFound):
            mendel.InferenceSession("none.onnx")


class OldNameTest(unittest.TestCase):
    def test_mendel_client_warns(self):
        try:
            import grpc  # noqa: F401
        except ImportError:
            self.skipTest("no grpc")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import mendel_client
            from mendel_client.client import Client
        self.assertTrue(any(w.category is DeprecationWarning and "mendel.service" in str(w.message) for w in seen))
        self.assertIs(Client, mendel_client.Client)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
