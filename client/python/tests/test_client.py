"""The client against a fake server over real gRPC."""
import multiprocessing
import os
import pathlib
import random
import signal
import tempfile
import time
import unittest
from unittest import mock

from fake_server import Fault, FakeServer, retry_info
from mendel.service import Client, JobFailed, MendelError
from mendel.service._messages import message
from mendel.service._model_files import external_locations


def field(number, payload):
    """A length-delimited protobuf field."""
    size, text = len(payload), bytearray([number << 3 | 2])
    while size > 127:
        text.append(size & 127 | 128)
        size >>= 7
    return bytes(text) + bytes([size]) + payload


def model_bytes(*locations):
    """A ModelProto whose graph has initializers in these files, the last one in an attribute's subgraph."""
    def tensor(location):
        return field(13, field(1, b"location") + field(2, location.encode())) + b"\x70\x01"
    graph = b"".join(field(5, tensor(location)) for location in locations[:-1])
    if locations:
        graph += field(1, field(5, field(6, field(5, tensor(locations[-1])))))
    return b"\x08\x08" + field(7, graph)


def killed_halfway(function, *arguments):
    """Runs a client in a process of its own that kills itself (SIGKILL) when half of the bytes are through."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join(60)
    return process.exitcode == -signal.SIGKILL


def die_halfway(done, total):
    if 2 * done > total:
        os.kill(os.getpid(), signal.SIGKILL)


def upload_and_die(address, path):
    Client(address).upload(path, die_halfway)


def download_and_die(address, plan, path):
    Client(address).download(plan, path, die_halfway)


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.client = Client(self.server.address, retry_time=20)
        self.addCleanup(self.client.close)
        quick = mock.patch("mendel.service._retry.INITIAL", 0.01)
        quick.start()
        self.addCleanup(quick.stop)

    def big_model(self, size=6 << 20):
        (self.folder / "m.onnx").write_bytes(model_bytes("w.bin"))
        (self.folder / "w.bin").write_bytes(random.Random(1).randbytes(size))
        return self.folder / "m.onnx"

    def test_external_locations(self):
        path = self.folder / "m.onnx"
        path.write_bytes(model_bytes("b.bin", "a/c.bin", "b.bin"))
        self.assertEqual(external_locations(path), ["a/c.bin", "b.bin"])
        for bad in (b"", b"\xff", b"\x3a\x7f", b"\x0b"):
            path.write_bytes(bad)
            with self.assertRaises(MendelError) as caught:
                external_locations(path)
            self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")

    def test_external_data_outside_is_refused(self):
        for location in ("../w.bin", "/etc/passwd", "a/../../w.bin", "none.bin"):
            (self.folder / "m.onnx").write_bytes(model_bytes(location))
            with self.assertRaises(MendelError, msg=location):
                self.client.upload(self.folder / "m.onnx")

    def test_links_out_of_the_models_folder_are_refused(self):
        model = self.folder / "model"
        model.mkdir()
        (self.folder / "secret.bin").write_bytes(bytes(16))
        (model / "link.bin").symlink_to("../secret.bin")
        (model / "up").symlink_to("..")
        for location in ("link.bin", "up/secret.bin"):
            (model / "m.onnx").write_bytes(model_bytes(location))
            with self.assertRaises(MendelError, msg=location) as caught:
                self.client.upload(model / "m.onnx")
            self.assertIn("secret.bin", str(caught.exception))

    def test_upload_resumes_and_is_not_repeated(self):
        path = self.big_model()

        def fault(call, done):
            if call == "Write" and done >= 2 << 20:
                raise Fault("UNAVAILABLE")
        self.server.fault = fault
        model = self.client.upload_model(path)
        self.assertEqual([name for name, _, _ in model.files], ["m.onnx", "w.bin"])
        sizes = sum(size for _, _, size in model.files)
        self.assertEqual(self.server.received, sizes, "no byte travels twice")
        self.assertEqual(self.client.upload(path), model.name)
        self.assertEqual(self.server.received, sizes)

    def test_another_clients_upload_is_left_alone(self):
        def fault(call, done):
            if call == "Write" and not done and self.server.calls.count("Write") <= 5:
                raise Fault("ABORTED", "somebody writes")
        self.server.fault = fault
        self.client.upload(self.big_model(1 << 20))
        self.assertEqual(self.server.calls.count("Write"), 5 + 2)

    def test_killed_upload_goes_on(self):
        path = self.big_model(16 << 20)
        self.assertTrue(killed_halfway(upload_and_die, self.server.address, str(path)))
        before = self.server.received
        self.assertGreater(before, 1 << 20)
        time.sleep(0.2)
        self.client.upload(path)
        self.assertIn((self.folder / "w.bin").read_bytes(), self.server.blobs.values())
        self.assertLess(self.server.received - before, 16 << 20, "the second client went on")

    def test_killed_download_goes_on(self):
        data = random.Random(2).randbytes(8 << 20)
        plan, target = self.server.add_plan(data), self.folder / "m.plan"
        self.assertTrue(killed_halfway(download_and_die, self.server.address, plan.name, str(target)))
        self.assertFalse(target.exists(), "half a plan must not be seen")
        before = self.server.sent
        self.client.download(plan.name, target)
        self.assertEqual(target.read_bytes(), data)
        self.assertLess(self.server.sent - before, 5 << 20)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["m.plan"])

    def test_wrong_bytes_are_not_kept(self):
        plan, target = self.server.add_plan(b"right" * 1000), self.folder / "m.plan"
        self.server.blobs[plan.name.split("/")[1]] = b"wrong" * 1000
        target.write_bytes(b"what was there")
        with self.assertRaises(MendelError) as caught:
            self.client.download(plan.name, target)
        self.assertEqual(caught.exception.code, "DATA_LOSS")
        self.assertEqual(target.read_bytes(), b"what was there")

    def test_lost_answer_makes_no_second_job(self):
        def fault(call, _):
            if call == "SubmitJob answer" and self.server.calls.count("SubmitJob") < 3:
                raise Fault("UNAVAILABLE")
        self.server.fault = fault
        job = self.client.submit("models/x", shapes="x:1x2", budget=1.5, disabled_rules=["a"], weights="exact",
                                 max_weight_growth_bytes=9)
        self.assertEqual(list(self.server.jobs), [job])
        spec = self.server.jobs[job].spec.optimize
        self.assertEqual((spec.shapes, spec.budget.time.seconds, spec.budget.time.nanos, list(spec.disabled_rules), spec.weights,
                          spec.max_weight_growth_bytes),
                         ("x:1x2", 1, 500_000_000, ["a"], "exact", 9))

    def test_only_retried_as_grpc_allows(self):
        cases = {("UNAVAILABLE", b""): True, ("RESOURCE_EXHAUSTED", retry_info(0.01)): True, ("RESOURCE_EXHAUSTED", b""): False,
                 ("DEADLINE_EXCEEDED", b""): False, ("INTERNAL", b""): False, ("ABORTED", b""): False}
        for (code, details), retried in cases.items():
            with self.subTest(code=code, retried=retried):
                self.server.calls.clear()

                def fault(call, _, code=code, details=details):
                    if len(self.server.calls) == 1:
                        raise Fault(code, "text", details)
                self.server.fault = fault
                if retried:
                    self.client.jobs()
                else:
                    with self.assertRaises(MendelError) as caught:
                        self.client.jobs()
                    self.assertEqual((caught.exception.code, caught.exception.message), (code, "text"))
                self.assertEqual(len(self.server.calls), 2 if retried else 1)

    def test_gives_up(self):
        self.server.stop()
        with self.assertRaises(MendelError) as caught:
            Client(self.server.address, retry_time=0.05).jobs()
        self.assertEqual(caught.exception.code, "UNAVAILABLE")

    def events(self, count):
        events = [message("mendel.v1.JobEvent")(sequence=k) for k in range(1, count + 1)]
        for event in events[:-1]:
            event.progress.phase, event.progress.best_speedup = "search", 1.5
        events[-1].state = 4
        return events

    def test_watch_resumes_by_sequence(self):
        self.server.jobs["jobs/1"] = message("mendel.v1.Job")(name="jobs/1", state=4, plan="plans/p")
        self.server.events["jobs/1"] = self.events(20)

        def fault(call, done):
            if call == "WatchJob" and done == 3:
                raise Fault("UNAVAILABLE")
        self.server.fault = fault
        seen = []
        job = self.client.wait("jobs/1", seen.append)
        self.assertEqual([event.sequence for event in seen], list(range(1, 21)))
        self.assertEqual((seen[0].progress.phase, seen[-1].state, job.plan), ("search", "SUCCEEDED", "plans/p"))

    def test_failed_jobs_raise(self):
        job = message("mendel.v1.Job")(name="jobs/1", state=5)
        job.error.code, job.error.message = 3, "node 'a' is bad"
        self.server.jobs["jobs/1"] = job
        with self.assertRaises(JobFailed) as caught:
            self.client.wait("jobs/1")
        self.assertEqual((caught.exception.code, caught.exception.job), ("INVALID_ARGUMENT", "jobs/1"))
        self.assertIn("node 'a' is bad", str(caught.exception))

    def test_verify(self):
        def decide(job):
            job.state, job.verdict.kind, job.verdict.bound_log2 = 4, 3, -100
            output = job.verdict.outputs.add(name="y", shape=[4], elements=4, wrong_elements=1)
            output.boxes.add(begin=[3], end=[4])
        self.server.on_submit = decide
        verdict = self.client.verify("models/a", "models/b", weights="symbolic")
        self.assertEqual((verdict.kind, bool(verdict), verdict.outputs[0].boxes[0].begin), ("partial", False, (3,)))

    def test_lists_are_read_to_the_end(self):
        for k in range(2500):
            self.server.jobs[f"jobs/{k}"] = message("mendel.v1.Job")(name=f"jobs/{k}", state=1 + k % 2)
        self.assertEqual(len(self.client.jobs(limit=0)), 2500)
        self.assertEqual(len(self.client.jobs(limit=1200)), 1200)
        self.assertEqual(len(self.client.jobs(states=["RUNNING"], limit=0)), 1250)

    def test_tokens_and_addresses(self):
        token_file = self.folder / "token"
        token_file.write_text("secret\nmore\n")
        server = FakeServer(f"unix:{self.folder}/socket")
        self.addCleanup(server.stop)
        with Client(server.address, token_file=str(token_file)) as client:
            self.assertTrue(client.health())
        self.assertEqual(server.tokens, {"Bearer secret"})
        with self.assertRaises(MendelError):
            Client("example.org:443", token="secret")
        with self.assertRaises(MendelError):
            Client("localhost:1", root_certificates="x")


if __name__ == "__main__":
    unittest.main()
