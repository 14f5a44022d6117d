"""The pipeline against a fake server: gates, installation, rolling back, coming back."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "client" / "python" / "tests"), str(pathlib.Path(__file__).resolve().parent)]

import pipeline  # noqa: E402
from fake_server import FakeServer, Fault  # noqa: E402


class PipelineTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = pathlib.Path(folder.name)
        self.speedup, self.bound, self.kind, self.data, self.unmeasured = 1.5, -100, 1, b"plan", False
        self.server.on_submit = self.work

    def work(self, job):
        """The server's worker."""
        job.state = 4
        if job.spec.WhichOneof("work") == "verify_plan":
            job.verdict.kind = self.kind
        else:
            plan = self.server.add_plan(self.data, speedup=self.speedup, bound_log2=self.bound, job=job.name, device="cpu",
                                        unmeasured=self.unmeasured)
            job.plan = plan.name

    def add(self, name, content=b"\x08\x08"):
        folder = self.repository / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(content)
        return folder

    def run_once(self, *options):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            code = pipeline.main([str(self.repository), "--server", self.server.address, "--once", *options])
        return code, output.getvalue()

    def test_a_new_version_gets_its_plan_once(self):
        folder = self.add("resnet/2")
        (self.repository / "resnet" / "config.pbtxt").write_text("")
        code, output = self.run_once()
        self.assertEqual((code, (folder / "model.plan").read_bytes()), (0, b"plan"))
        self.assertIn("resnet/2: installed", output)
        facts = json.loads((folder / "model.plan.json").read_text())
        self.assertEqual((facts["speedup"], facts["bound_log2"], facts["device"]), (1.5, -100, "cpu"))
        calls = len(self.server.calls)
        self.assertEqual(self.run_once(), (0, ""))
        self.assertEqual(len(self.server.calls), calls, "nothing to do")
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["model.onnx", "model.plan", "model.plan.json"])

    def refused(self, reason, *options):
        folder = self.add("m/1")
        code, output = self.run_once(*options)
        self.assertEqual(code, 0)
        self.assertIn(reason, output)
        self.assertIn(reason, json.loads((folder / "model.plan.refused").read_text())["reason"])
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["model.onnx", "model.plan.refused"])

    def test_too_slow(self):
        self.speedup = 1.01
        self.refused("1.01x")

    def test_predicted_only(self):
        self.unmeasured = True
        self.refused("predicted")

    def test_bound_too_weak(self):
        self.bound = -40
        self.refused("2^-40")

    def test_certificate_does_not_replay(self):
        self.kind = 4
        self.refused("does not replay: different")

    def test_failing_command_rolls_back_the_first(self):
        self.refused("rolled back", "--after-install", "test -e \"$MENDEL_PLAN\" && exit 3")

    def test_failing_command_puts_the_former_plan_back(self):
        folder = self.add("m/1")
        self.run_once()
        self.data = b"another plan"
        self.add("m/1", b"\x08\x09")
        _, output = self.run_once("--after-install", "exit 3")
        self.assertIn("rolled back", output)
        self.assertEqual((folder / "model.plan").read_bytes(), b"plan")
        self.assertFalse((folder / "model.plan.previous").exists())
        (folder / "model.plan.refused").unlink()
        self.run_once("--after-install", "exit 0")
        self.assertEqual((folder / "model.plan").read_bytes(), b"another plan")

    def test_a_busy_server_is_tried_again_later(self):
        folder = self.add("m/1")

        def fault(call, _):
            if call == "SubmitJob":
                raise Fault("RESOURCE_EXHAUSTED", "the queue is full")
        self.server.fault = fault
        self.assertEqual(self.run_once()[0], 1)
        self.assertEqual([p.name for p in folder.iterdir()], ["model.onnx"])
        self.server.fault = lambda call, done: None
        self.assertEqual(self.run_once()[0], 0)
        self.assertTrue((folder / "model.plan").exists())


if __name__ == "__main__":
    unittest.main()
