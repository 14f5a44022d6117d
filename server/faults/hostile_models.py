"""Models that were made to hurt, through a whole server with real workers.

usage: hostile_models.py MENDEL MAKE_VERIFY_PAIRS   (PYTHONPATH: the package mendel.service)

Each is uploaded as it is (the client's own checks are left out), and its job must fail with an ordinary reason, without a word about
the server's files; then a good model is optimized as ever. Under strace, where that is installed, no process of the server may open
anything beyond its data folder, the system's libraries and what the kernel reports about the machine.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

import mendel.service.client
from mendel.service import Client, JobFailed

PATIENCE = 600.0  # for what must happen, on a machine of any speed
REFUSALS = ("INVALID_ARGUMENT", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED")
FLOAT, INT64 = 1, 7
# Paths that processes may open: the system's programs and libraries, the kernel's files about the machine, and in a worker's sandbox
# (/job, before it begins /newroot/job) its own folder.
SYSTEM = (r"(/newroot)?(/|/(usr|lib|lib64|bin|proc|sys/devices/system|sys/fs/cgroup|sys/kernel/mm/transparent_hugepage|etc/alternatives"
          r"|mendel|job/(in|out|cache|tmp))(/.*)?"
          r"|/dev(/null|/zero|/full|/random|/urandom|/tty|/shm/.*)?|/etc/ld\.so\.(cache|preload))|/newroot|/etc/ssl/openssl\.cnf|pipe:.*|anon_inode:.*")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def text(number: int, payload) -> bytes:
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def value(name: str, dims: List[int]) -> bytes:
    shape = b"".join(text(1, integer(1, dim)) for dim in dims)
    return text(1, name) + text(2, text(1, integer(1, FLOAT) + text(2, shape)))


def tensor(name: str, kind: int, dims: List[int], raw: bytes) -> bytes:
    return b"".join(integer(1, dim) for dim in dims) + integer(2, kind) + text(8, name) + text(9, raw)


def integers(name: str, *values: int) -> bytes:
    return tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))


def floats(name: str, *values: float, dims=None) -> bytes:
    return tensor(name, FLOAT, [len(values)] if dims is None else dims, struct.pack(f"<{len(values)}f", *values))


def node(op: str, inputs: List[str], outputs: List[str], attributes: bytes = b"") -> bytes:
    return b"".join(text(1, name) for name in inputs) + b"".join(text(2, name) for name in outputs) + text(4, op) + attributes


def graph(nodes: List[bytes], initializers=(), dims=(2, 3), sparse=()) -> bytes:
    return b"".join(text(1, one) for one in nodes) + b"".join(text(5, one) for one in initializers) + b"".join(
        text(15, one) for one in sparse) + text(11, value("x", list(dims))) + text(12, value("y", []))


def model(*arguments, **more) -> bytes:
    return integer(1, 8) + text(8, integer(2, 17)) + text(7, graph(*arguments, **more))


def external(location: str) -> bytes:
    """x + w, with w in another file."""
    w = integer(1, 2) + integer(1, 3) + integer(2, FLOAT) + text(8, "w") + text(13, text(1, "location") + text(2, location)) + integer(14, 1)
    return model([node("Add", ["x", "w"], ["y"])], [w])


def nested(levels: int) -> bytes:
    inner = graph([node("Relu", ["x"], ["y"])])
    for _ in range(levels):
        inner = graph([node("If", ["c"], ["y"], text(5, text(1, "then_branch") + text(6, inner) + integer(20, 5)))])
    return integer(1, 8) + text(8, integer(2, 17)) + text(7, inner)


def chain(count: int) -> bytes:
    return model([node("Relu", ["x" if k == 0 else f"v{k}"], ["y" if k + 1 == count else f"v{k + 1}"]) for k in range(count)])


def hostile_models(secret: pathlib.Path) -> Dict[str, bytes]:
    doubled = [node("Concat", [f"v{k}" if k else "x"] * 2, [f"v{k + 1}" if k < 61 else "y"], text(5, text(1, "axis") + integer(3, 0) + integer(20, 2)))
               for k in range(62)]
    resize = [node("Resize", ["x", "", "s"], ["y"])]
    no_values = text(1, floats("w", dims=[0])) + text(2, tensor("i", INT64, [0], b"")) + integer(3, 1 << 31) + integer(3, 1 << 31)
    return {
        "absolute path": external(str(secret)),
        "path above": external(f"../../../../../../../../../..{secret}"),
        "path above, inside": external(f"none/../..{'/..' * 12}{secret}"),
        "file of the machine": external("/etc/passwd"),
        "the job's lock": external("../../lock"),
        "not in the manifest": external("w.bin"),
        "a million nodes and one": chain(1_000_001),
        "nested deeply": nested(2000),
        "nested within the parser's limit": nested(40),
        "dimensions beyond 64 bits": model([node("Relu", ["x"], ["y"])], dims=[1 << 40, 1 << 40]),
        "a negative dimension": model([node("Relu", ["w"], ["y"])], [tensor("w", FLOAT, [-2, -3], bytes(24))]),
        "a terabyte of zeros": model([node("ConstantOfShape", ["n"], ["z"]), node("Add", ["z", "x"], ["y"])], [integers("n", 1 << 38, 1, 1)]),
        "a tensor that is expanded": model([node("Expand", ["x", "n"], ["y"])], [integers("n", 1 << 34, 2, 3)]),
        "a tensor that is repeated": model([node("Tile", ["x", "n"], ["y"])], [integers("n", 1 << 40, 1 << 40)]),
        "doubled 62 times": model(doubled),
        "a sparse tensor": model([node("Relu", ["w"], ["y"])], sparse=[no_values]),
        "scaled by NaN": model(resize, [floats("s", float("nan"), 1.0)]),
        "scaled by infinity": model(resize, [floats("s", float("inf"), 1.0)]),
        "a range to NaN": model([node("Range", ["a", "b", "c"], ["y"])], [floats("a", 0.0, dims=[]), floats("b", float("nan"), dims=[]), floats("c", 1.0, dims=[])]),
        "reshaped twice to the rest": model([node("Reshape", ["x", "n"], ["y"])], [integers("n", -1, -1)]),
        "a circle": model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
        "cut off": chain(100)[:-7],
        "no model": b"\x00\xff" * 1000,
        "a name that is no text": model([text(1, b"\xff\xfe") + text(2, "y") + text(4, "Relu")]),
    }


class Server:
    def __init__(self, mendel: str, folder: pathlib.Path):
        self.mendel, self.folder, self.traces = mendel, folder, folder / "traces"
        self.address, self.data = f"unix:{folder}/socket", folder / "data"
        self.traces.mkdir()
        self.traced = self.tracing()
        words = [mendel, "serve", "--listen", self.address, "--data", self.data, "--metrics-listen", "", "--http-port", "none", "--max-job-memory-bytes",
                 "1GiB", "--max-wall-seconds", "120"]
        with open(folder / "server.log", "w") as log:
            self.process = subprocess.Popen([*(self.strace() if self.traced else []), *words], stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while subprocess.run([mendel, "health", "--server", self.address], capture_output=True, check=False).returncode != 0:
            assert time.monotonic() < end and self.process.poll() is None, (folder / "server.log").read_text()
            time.sleep(0.1)

    def strace(self) -> List[str]:
        return ["strace", "-ff", "-qq", "-y", "-e", "trace=open,openat,openat2", "-e", "signal=none", "-o", str(self.traces / "t")]

    def tracing(self) -> bool:
        if shutil.which("strace") is None:
            return False
        return subprocess.run([*self.strace(), "true"], capture_output=True, check=False).returncode == 0

    def stop(self) -> None:
        for line in subprocess.run(["pgrep", "-P", str(self.process.pid), "-x", "mendel"], capture_output=True, text=True, check=False).stdout.split():
            os.kill(int(line), 15)
        if not self.traced:
            self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, "the server did not drain"

    def opened(self) -> List[str]:
        """Real paths of everything that any process of the server opened."""
        paths = set()
        for trace in self.traces.iterdir():
            paths.update(re.findall(r"^open.* = \d+<(.*)>$", trace.read_text(errors="replace"), re.MULTILINE))
        return sorted(paths)


def upload(client: Client, path: pathlib.Path) -> str:
    """The file alone, whatever it refers to."""
    mendel.service.client.model_files = lambda main: {pathlib.Path(main).name: pathlib.Path(main)}
    return client.upload(path)


def fault_of(client: Client, server: Server, what: str, path: pathlib.Path) -> List[str]:
    """How the job of a model ended otherwise than it should: one sentence, or none."""
    try:
        ended = client.wait(client.submit(upload(client, path), budget=1, candidates=1, threads=1, wall_time=100))
    except JobFailed as error:
        print(f"{what}: {error.code}: {error.message.partition(': ')[2][:150]}", flush=True)
        good = error.code in REFUSALS and str(server.data) not in error.message and "secret of" not in error.message
        return [] if good else [f"{what}: {error}"]
    return [f"{what}: {ended}"]


def main() -> None:
    mendel, make_pairs = sys.argv[1:]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mendel-hostile-"))
    folder.chmod(0o755)
    secret = folder / "secret.bin"
    secret.write_bytes(b"the secret of the server")  # as long as two rows of three numbers
    server = None
    try:
        subprocess.run([make_pairs, folder], check=True, stdout=subprocess.DEVNULL)
        server = Server(mendel, folder)
        with Client(server.address, retry_time=PATIENCE, call_timeout=PATIENCE) as client:
            faults = []
            for what, content in hostile_models(secret).items():
                path = folder / "model.onnx"
                path.write_bytes(content)
                faults += fault_of(client, server, what, path)
            assert not faults, "\n".join(faults)
            good = client.wait(client.submit(upload(client, folder / "net.onnx"), budget=1, candidates=1, threads=1))
            assert good.state == "SUCCEEDED", good
        server.stop()
        done = subprocess.run([mendel, "fsck", "--data", server.data], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        if server.traced:
            own = rf"{re.escape(str(server.data))}(/.*)?|{re.escape(mendel)}.*|{re.escape(str(pathlib.Path(mendel).parent))}/lib.*"
            strange = [path for path in server.opened() if not re.fullmatch(f"{SYSTEM}|{own}", path)]
            assert not strange, f"opened: {strange}"
            print(f"{len(server.opened())} files were opened, each its own or the system's")
        else:
            print("SKIP: what is opened (no strace)")
    except BaseException:
        print((folder / "server.log").read_text()[-3000:] if server else "")
        raise
    finally:
        if server and server.process.poll() is None:
            subprocess.run(["pkill", "-KILL", "-P", str(server.process.pid)], check=False)
            server.process.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
