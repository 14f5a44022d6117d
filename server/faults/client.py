"""One client of service_faults.py, killed and started again at any moment. usage: client.py FOLDER NUMBER SEED

It submits, watches, uploads and downloads through the Python package and the command. Each thing that the server acknowledged becomes
one line of FOLDER/said-NUMBER, written at once, so that it survives the client:

    job REQUEST_ID NAME | ended NAME STATE | plan NAME | model NAME
"""
import hashlib
import os
import pathlib
import random
import subprocess
import sys
import time
import uuid

from mendel.service import Client, JobFailed, MendelError

RETRY_TIME = 600.0  # servers come back, on busy machines late


def external_model(path: pathlib.Path, size: int, rng: random.Random) -> None:
    """A small ONNX file whose only tensor lies in a file of its own, of random bytes."""

    def field(number: int, payload: bytes) -> bytes:
        length, text = len(payload), bytearray([number << 3 | 2])
        while length > 127:
            text.append(length & 127 | 128)
            length >>= 7
        return bytes(text) + bytes([length]) + payload

    data = f"{path.stem}.bin"
    tensor = b"\x10\x01" + field(8, b"w") + field(13, field(1, b"location") + field(2, data.encode())) + b"\x70\x01"
    path.with_name(data).write_bytes(rng.randbytes(size))
    path.write_bytes(b"\x08\x08" + field(7, field(5, tensor)) + field(8, b"\x10\x11"))


class Customer:
    def __init__(self, folder: pathlib.Path, number: int, seed: int):
        self.folder, self.number, self.rng = folder, number, random.Random(seed)
        self.client = Client(retry_time=RETRY_TIME)
        self.own = folder / f"client-{number}"
        self.own.mkdir(exist_ok=True)
        self.said = os.open(folder / f"said-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.models = (folder / "models").read_text().split()

    def say(self, *words: str) -> None:
        os.write(self.said, (" ".join(words) + "\n").encode())

    def submit(self, request_id: str) -> str:
        # The request follows entirely from its id, so that a successor can repeat it.
        rng = random.Random(request_id)
        job = self.client.submit(rng.choice(self.models[:2]), budget=1, candidates=2, threads=1, seed=rng.randrange(1, 1 << 60),
                                 request_id=request_id)
        self.say("job", request_id, job)
        return job

    def intend(self) -> str:
        """A new request id, or that of a predecessor which died before it knew the answer."""
        path = self.own / "intent"
        request_id = path.read_text() if path.exists() else str(uuid.UUID(int=self.rng.getrandbits(128)))
        path.with_name("intent.new").write_text(request_id)
        path.with_name("intent.new").rename(path)
        return request_id

    def optimize(self) -> None:
        job = self.submit(self.intend())
        (self.own / "intent").unlink()
        if self.rng.random() < 0.2:
            return
        last = 0
        for event in self.client.watch(job):
            assert event.sequence > last, (job, event)
            last = event.sequence
            if self.rng.random() < 0.05:
                return
        ended = self.client.job(job)
        assert ended.done, ended
        self.say("ended", job, ended.state)
        if ended.state == "SUCCEEDED":
            self.say("plan", ended.plan)
            self.download(ended.plan)

    def download(self, plan: str) -> None:
        path = self.own / f"{plan.split('/')[1]}.plan"
        self.client.download(plan, path)
        path.unlink()

    def compare(self) -> None:
        kind = "equivalent" if self.rng.random() < 0.5 else "partial"
        try:
            verdict = self.client.verify(self.models[0], self.models[1 if kind == "equivalent" else 2])
        except JobFailed as error:
            assert "WORKER" in str(error) or "worker" in str(error), error
            return
        assert verdict.kind == kind, verdict

    def upload(self) -> None:
        path = self.own / "upload.onnx"
        done = self.own / "uploaded"
        if done.exists() or not path.exists():
            path.unlink(missing_ok=True)
            external_model(path, self.rng.randrange(1 << 16, 4 << 20), self.rng)
            done.unlink(missing_ok=True)
        self.say("model", self.client.upload(path))
        done.touch()

    def command(self) -> None:
        """The same by `mendel submit`; its file appears when it is whole."""
        path = self.own / "command.plan"
        path.unlink(missing_ok=True)
        code = subprocess.run([os.environ["MENDEL"], "submit", self.folder / "net.onnx", "--budget", "1s", "--max-candidates", "2", "--threads", "1",
                               "--seed", str(self.rng.randrange(1, 1 << 60)), "--retry-time", f"{RETRY_TIME:.0f}s", "-o", path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        assert path.exists() == (code == 0), (code, path)
        if code == 0:
            self.say("plan", f"plans/{hashlib.sha256(path.read_bytes()).hexdigest()}")

    def run(self) -> None:
        while not (self.folder / "stop").exists():
            try:
                self.rng.choice((self.optimize, self.optimize, self.compare, self.upload, self.command))()
            except MendelError as error:
                # A call that must not be retried blindly (a verify job's answer) is skipped.
                if error.code not in ("UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED"):
                    raise
                time.sleep(0.1)


if __name__ == "__main__":
    Customer(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])).run()
