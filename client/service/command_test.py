"""The command's client (submit, watch, jobs, cancel, plans, health, verify --server) against a fake server over real gRPC: what it
prints, its exit codes, and what is left when it is killed. usage: command_test.py MENDEL EXAMPLES (folder with squeezenet1_1.onnx)"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "client" / "python" / "tests"))

import grpc  # noqa: E402
from fake_server import FakeServer, Fault, retry_info  # noqa: E402
from mendel.service._messages import message  # noqa: E402

MENDEL, EXAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = EXAMPLES / "squeezenet1_1.onnx"


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = FakeServer(f"unix:{self.folder}/s")
        self.addCleanup(self.server.stop)
        self.data = random.Random(3).randbytes(2 << 20)
        self.server.on_submit = self.work

    def work(self, job):
        """The server's worker: a plan at once, with a history of events."""
        job.state, job.plan = 4, self.server.add_plan(self.data, speedup=1.7, baseline_ms=3.4, plan_ms=2, bound_log2=-116).name
        events = [message("mendel.v1.JobEvent")(sequence=k) for k in (1, 2, 3)]
        events[0].progress.phase, events[0].progress.candidates, events[0].progress.best_speedup = "search", 12, 1.25
        events[0].progress.time_left.seconds = 9
        events[1].warning, events[2].state = "a rule was left out", 4
        self.server.events[job.name] = events

    def command(self, *words, server=None, **options):
        environment = {**os.environ, "MENDEL_SERVER": server or self.server.address, **options.pop("environment", {})}
        return subprocess.Popen([MENDEL, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env=environment, **options)

    def expect(self, code, text, *words, **options):
        process = self.command(*words, **options)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, f"{words}\n{out}\n{err}")
        self.assertIn(text, out + err)
        return out

    def test_submit_waits_and_writes_the_plan(self):
        out = self.expect(0, "speed-up    1.70x", "submit", MODEL, "-o", "m.plan", "--shapes", "data:1x3x224x224", "--budget", "1.5s",
                          "--threads", "2", "--disable", "a,b", "--seed", "7", "--priority", "3", "--wall-time", "2m")
        self.assertIn("certificate every element equal, bound 2^-116", out)
        self.assertEqual((self.folder / "m.plan").read_bytes(), self.data)
        (job,) = self.server.jobs.values()
        spec = job.spec.optimize
        self.assertEqual((spec.shapes, spec.budget.time.seconds, spec.budget.time.nanos, spec.threads, list(spec.disabled_rules), spec.seed,
                          spec.budget.wall_time.seconds),
                         ("data:1x3x224x224", 1, 500_000_000, 2, ["a", "b"], 7, 120))
        self.assertEqual((spec.weights, spec.device), ("", ""))
        self.assertEqual(self.server.blobs[spec_blob(self.server, MODEL)], MODEL.read_bytes())

    def test_exact_weights_and_predicted_times(self):
        def work(job):
            job.state = 4
            job.plan = self.server.add_plan(b"plan", speedup=1.7, baseline_ms=3.4, plan_ms=2, device="cuda", isa="sm_90", unmeasured=True).name
        self.server.on_submit = work
        out = self.expect(0, "plan        2.000 ms (unmeasured, predicted)", "submit", MODEL, "-o", "m.plan", "--weights", "exact", "--device", "cuda:sm_90")
        self.assertIn("baseline    3.400 ms (unmeasured, predicted)", out)
        (job,) = self.server.jobs.values()
        self.assertEqual((job.spec.optimize.weights, job.spec.optimize.device), ("exact", "cuda:sm_90"))
        self.expect(0, "1.70x (predicted)  cuda sm_90", "plans")
        self.assertIs(json.loads(self.expect(0, "", "plans", "--json"))["plans"][0]["unmeasured"], True)
        self.expect(2, "approximate", "submit", MODEL, "--weights", "approximate")

    def test_pipes(self):
        with MODEL.open("rb") as model:
            process = subprocess.run([MENDEL, "submit", "-", "-o", "-"], stdin=model, capture_output=True, cwd=self.folder, timeout=60, check=True,
                                     env={**os.environ, "MENDEL_SERVER": self.server.address})
        self.assertEqual(process.stdout, self.data)
        self.assertIn(b"speed-up    1.70x", process.stderr)
        self.assertEqual(self.server.blobs[spec_blob(self.server, MODEL)], MODEL.read_bytes())
        self.expect(2, "cannot take both", "submit", MODEL, "-o", "-", "--json")

    def test_progress_and_warnings_as_the_local_command_prints_them(self):
        process = self.command("submit", MODEL, "--wait")
        out, err = process.communicate(timeout=60)
        self.assertRegex(err, r"search  12 candidates \(0\.0/s\)  best 1\.25x  9 s left")
        self.assertIn("note: a rule was left out", err)
        self.assertRegex(out, r"(?m)^plan +plans/[0-9a-f]{64}$")

    def test_json(self):
        facts = json.loads(self.expect(0, "", "submit", MODEL, "-o", "m.plan", "--json"))
        self.assertEqual((facts["job"]["state"], facts["plan"]["speedup"], facts["file"]), ("succeeded", 1.7, "m.plan"))
        self.assertEqual(facts["notices"], ["a rule was left out"])
        jobs = json.loads(self.expect(0, "", "jobs", "--json"))["jobs"]
        self.assertEqual([job["state"] for job in jobs], ["succeeded"])
        plans = json.loads(self.expect(0, "", "plans", "--json"))["plans"]
        self.expect(0, "wrote       again.plan", "plans", "get", plans[0]["name"].split("/")[1], "-o", "again.plan")
        error = json.loads(self.expect(5, "", "jobs", "none", "--json"))["error"]
        self.assertEqual(error, {"code": "NOT_FOUND", "message": "there is no jobs/none"})

    def test_exit_codes(self):
        def end(state, code=0, kind=0):
            def work(job):
                job.state = state
                if code:
                    job.error.code, job.error.message = code, "node 'n' is bad"
                if kind:
                    job.verdict.kind, job.verdict.reason = kind, "because"
            self.server.on_submit = work
        end(5, code=3)
        self.expect(2, "node 'n' is bad", "submit", MODEL, "--wait")
        end(5, code=13)
        self.expect(5, "the server failed", "submit", MODEL, "--wait")
        end(6)
        self.expect(130, "was cancelled", "submit", MODEL, "--wait")
        for kind, code, word in [(1, 0, "equivalent"), (2, 1, "equivalent-after-refit"), (3, 1, "partial"), (4, 1, "different: because"),
                                 (5, 3, "unproven")]:
            end(4, kind=kind)
            self.expect(code, word, "verify", MODEL, MODEL, "--server", self.server.address)
        end(4, kind=2)
        self.expect(0, "refit", "verify", MODEL, MODEL, "--server", self.server.address, "--fold-tolerance", "8")
        self.expect(2, "--map does not go", "verify", MODEL, MODEL, "--server", self.server.address, "--map", "a=b")
        self.expect(5, "there is no jobs/x", "cancel", "x")
        self.expect(2, "plans takes", "plans", "get")
        self.expect(2, "is no state", "jobs", "--state", "odd")

    def test_health(self):
        self.expect(0, "serving", "health")
        self.server.stop()
        started = time.monotonic()
        self.expect(5, "", "health")
        self.assertLess(time.monotonic() - started, 30, "a probe is tried once")

    def test_retries(self):
        def fault(call, _):
            if call == "SubmitJob" and self.server.calls.count("SubmitJob") < 3:
                raise Fault("RESOURCE_EXHAUSTED", "the queue is full", retry_info(0.01))
            if call == "SubmitJob answer" and self.server.calls.count("SubmitJob") < 4:
                raise Fault("UNAVAILABLE", "gone")
        self.server.fault = fault
        self.expect(0, "the queue is full; trying again", "submit", MODEL)
        self.assertEqual((len(self.server.jobs), self.server.calls.count("SubmitJob")), (1, 4))
        self.server.fault = lambda call, done: (_ for _ in ()).throw(Fault("INTERNAL", "bug"))
        self.expect(5, "the server failed: bug", "jobs")
        self.assertEqual(self.server.calls.count("ListJobs"), 1)
        self.assertFalse([path for path in self.folder.iterdir() if "bundle" in path.name])

    def kill_at(self, call, least):
        """The next command is killed by SIGKILL once so many bytes of a stream are through."""
        self.victim = None

        def fault(name, done):
            if name == call and done >= least and self.victim:
                self.victim.send_signal(signal.SIGKILL)
                self.victim.wait()
                raise Fault("UNAVAILABLE")
        self.server.fault = fault

    def run_victim(self, *words):
        self.victim = self.command(*words)
        self.victim.communicate(timeout=60)
        self.assertEqual(self.victim.returncode, -signal.SIGKILL)
        self.server.fault = lambda call, done: None

    def test_killed_upload_goes_on(self):
        size = MODEL.stat().st_size
        self.kill_at("Write", size // 2)
        self.run_victim("submit", MODEL)
        first = self.server.received
        self.assertLess(first, size)
        self.expect(0, "job ", "submit", MODEL)
        self.assertLessEqual(self.server.received, size + (1 << 20), "the second command went on")
        self.assertGreater(first, size // 2 - 1)

    def test_killed_download_goes_on(self):
        plan = self.server.add_plan(random.Random(4).randbytes(64 << 20)).name
        self.kill_at("Read", 32 << 20)
        self.run_victim("plans", "get", plan, "-o", "m.plan")
        self.assertFalse((self.folder / "m.plan").exists())
        (part,) = self.folder.glob("m.plan.*.part")
        there, before = part.stat().st_size, self.server.sent
        self.assertGreater(there, 0)
        self.expect(0, "wrote       m.plan", "plans", "get", plan, "-o", "m.plan")
        self.assertEqual(self.server.sent - before, (64 << 20) - there)
        self.assertEqual((self.folder / "m.plan").read_bytes(), self.server.blobs[plan.split("/")[1]])

    def test_interrupted_watch_reports_how_to_come_back(self):
        def work(job):
            job.state = 2
        self.server.on_submit = work
        self.server.fault = lambda call, done: time.sleep(5) if call == "WatchJob" else None
        process = self.command("submit", MODEL, "--wait")
        self.assertTrue(process.stdout.readable())
        while "WatchJob" not in self.server.calls:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("the job goes on; come back with: mendel watch jobs/0", err)
        self.assertEqual(self.server.calls.count("CancelJob"), 0)

    def test_tokens(self):
        (self.folder / "token").write_text("secret\n")
        self.expect(0, "", "jobs", "--token-file", "token")
        self.expect(0, "", "jobs", environment={"MENDEL_TOKEN": "other"})
        self.assertEqual(self.server.tokens, {"Bearer secret", "Bearer other"})
        self.expect(2, "needs TLS", "jobs", "--server", "example.org:443", "--token-file", "token")

    @unittest.skipUnless(shutil.which("openssl"), "SKIP: openssl")
    def test_tls(self):
        for name in ("server", "client"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
                            "subjectAltName=DNS:localhost", "-keyout", f"{name}.key", "-out", f"{name}.pem"],
                           cwd=self.folder, check=True, capture_output=True)
        read = {path.name: path.read_bytes() for path in self.folder.glob("*.*")}
        credentials = grpc.ssl_server_credentials([(read["server.key"], read["server.pem"])], read["client.pem"], True)
        server = FakeServer("localhost:0", credentials)
        self.addCleanup(server.stop)
        tls = ["--server", server.address, "--ssl-grpc-use-ssl", "--ssl-grpc-root-certifications-file", "server.pem"]
        own = ["--ssl-grpc-private-key-file", "client.key", "--ssl-grpc-certificate-chain-file", "client.pem"]
        (self.folder / "token").write_text("secret\n")
        self.expect(0, "serving", "health", *tls, *own, "--token-file", "token")
        self.expect(5, "", "health", *tls)
        self.expect(5, "", "health", "--server", server.address)
        self.expect(2, "a private key and a certificate chain", "health", *tls, *own[:2])
        self.assertEqual(server.tokens, {"Bearer secret"})


def spec_blob(server, path):
    (name,) = [sha256 for sha256, data in server.blobs.items() if len(data) == path.stat().st_size]
    return name


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
