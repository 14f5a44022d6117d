"""Plans run in this process. usage: test_run.py LIBMENDEL PLAN (of tests/make_small_plan)"""
import sys
import threading
import unittest

import numpy

from mendel import PlanError, load_plan

LIBRARY, PLAN = sys.argv[1:3]


class Foreign:
    """An array that can only be had through DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class RunTest(unittest.TestCase):
    def setUp(self):
        self.plan = load_plan(PLAN, library=LIBRARY)
        self.addCleanup(self.plan.close)
        self.value = self.plan.inputs[0]
        self.array = numpy.random.default_rng(1).standard_normal(self.value.shape).astype(self.value.numpy_dtype)

    def run_plan(self, array, **options):
        return self.plan.run({self.value.name: array}, **options)

    def test_values_are_described(self):
        self.assertEqual([(v.name, v.dtype, v.shape) for v in self.plan.inputs], [("x", "f32", (2, 8))])
        self.assertEqual([(v.name, v.dtype, v.shape) for v in self.plan.outputs], [("y", "f32", (2, 3))])
        self.assertRegex(self.plan.version, r"^\d+\.\d+\.\d+$")

    def test_runs_are_equal_however_the_input_comes(self):
        first = self.run_plan(self.array)["y"]
        self.assertTrue(numpy.any(first != 0))
        strided = numpy.asfortranarray(self.array)
        for other in (strided, Foreign(self.array), numpy.repeat(self.array, 2, axis=1)[:, ::2]):
            numpy.testing.assert_array_equal(self.run_plan(other)["y"], first)

    def test_outputs_into_given_arrays_and_dlpack(self):
        mine = numpy.full(self.plan.outputs[0].shape, numpy.nan, "float32")
        result = self.run_plan(self.array, outputs={"y": mine})["y"]
        self.assertIs(result, mine)
        numpy.testing.assert_array_equal(numpy.from_dlpack(result), self.run_plan(self.array)["y"])
        with self.assertRaises(PlanError):
            self.run_plan(self.array, outputs={"y": mine.T})

    def test_wrong_inputs_are_named(self):
        with self.assertRaisesRegex(PlanError, "'x' is float32\\[8, 2\\] where float32\\[2, 8\\]"):
            self.run_plan(self.array.T)
        with self.assertRaisesRegex(PlanError, "float64"):
            self.run_plan(self.array.astype("float64"))
        with self.assertRaisesRegex(PlanError, "no input 'z'"):
            self.plan.run({"x": self.array, "z": self.array})
        with self.assertRaisesRegex(PlanError, "'x' .* is missing"):
            self.plan.run({})

    def test_errors_of_the_library(self):
        with self.assertRaisesRegex(PlanError, "none.plan"):
            load_plan("none.plan", library=LIBRARY)
        with self.assertRaisesRegex(PlanError, "cannot load"):
            load_plan(PLAN, library="/none/libmendel.so")
        self.plan.close()
        with self.assertRaisesRegex(PlanError, "closed"):
            self.run_plan(self.array)

    def test_threads_share_a_plan(self):
        expected = self.run_plan(self.array)["y"]
        wrong = []

        def work():
            for _ in range(50):
                if not numpy.array_equal(self.run_plan(self.array)["y"], expected):
                    wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
