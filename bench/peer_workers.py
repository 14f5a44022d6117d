"""What bench/peers, bench/scaling and bench/gpu share: engines as processes of their own that wait while the others run, and what is reported of them."""
import json
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import time


def serve(run, ready="ready"):
    """The worker's loop over a prepared engine: one line of seconds in, the median and the smallest milliseconds out."""
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        seconds, times = float(line), []
        run()
        run()
        started = time.perf_counter()
        while len(times) < 3 or time.perf_counter() - started < seconds:
            begin = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - begin))
        print(json.dumps([statistics.median(times), min(times)]), flush=True)


def serve_loop(enqueue, wait, ready=""):
    """The worker's loop over an engine whose calls return before their work is done: one line of seconds in, two times in milliseconds out.
    Back to back: many calls and one wait at their end, divided by the calls. Latency: the median of single calls with a wait each."""
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        seconds, latencies = float(line), []
        for _ in range(3):
            enqueue()
        wait()
        started = time.perf_counter()
        while len(latencies) < 5 or time.perf_counter() - started < seconds / 2:
            begin = time.perf_counter()
            enqueue()
            wait()
            latencies.append(time.perf_counter() - begin)
        calls = max(5, int(seconds / 2 / statistics.median(latencies)))
        begin = time.perf_counter()
        for _ in range(calls):
            enqueue()
        wait()
        print(json.dumps([1e3 * (time.perf_counter() - begin) / calls, 1e3 * statistics.median(latencies)]), flush=True)


class Worker:
    """A process that runs serve(). RuntimeError with the last line of what it wrote to stderr when it ends or is silent too long."""

    def __init__(self, command, environment=None):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        bufsize=0, env=environment)
        self.unread = b""

    def answer(self, seconds=None):
        """Lines that are no JSON are a library's chatter."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            line, newline, rest = self.unread.partition(b"\n")
            if newline:
                self.unread = rest
                try:
                    return json.loads(line)
                except ValueError:
                    continue
            left = None if end is None else max(0, end - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                self.process.kill()
                raise RuntimeError(f"gave no answer in {seconds:.0f} s")
            chunk = self.process.stdout.read(65536)
            if not chunk:
                raise RuntimeError(self.last_error())
            self.unread += chunk

    def last_error(self):
        self.process.wait()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors if line.strip()]
        return lines[-1][:160] if lines else f"ended with exit code {self.process.returncode}"

    def measure(self, seconds, limit=None):
        """The two times that the worker's loop answers, in milliseconds."""
        try:
            self.process.stdin.write(f"{seconds}\n".encode())
        except BrokenPipeError:
            raise RuntimeError(self.last_error()) from None
        return self.answer(limit)

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class OutOfTime(RuntimeError):
    """A command was ended because its time was over."""


def run_json(*command, seconds=None):
    words = [str(word) for word in command]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise OutOfTime(f"{' '.join(words[:2])}: ended after {seconds:.0f} s") from None
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(words[:2])}: exit code {result.returncode}: {result.stderr[-200:].strip()}")
    return json.loads(result.stdout)


def rebatched(python, model, batch, folder):
    """The model itself for a batch of one (open dimensions are one), else a file for the batch."""
    if batch == 1:
        return model
    file = folder / f"{model.stem}.onnx"
    made = subprocess.run([python, pathlib.Path(__file__).parent / "rebatch.py", model, file, str(batch)], capture_output=True, text=True)
    if made.returncode != 0:
        raise RuntimeError((made.stderr.strip().splitlines() or ["unknown"])[-1][:160])
    return file


def median_and_spread(values):
    """(median, text with the spread: largest less smallest, in percent of the median)."""
    median = statistics.median(values)
    digits = 2 if median >= 1 else 4
    return median, f"{median:.{digits}f} ({100 * (max(values) - min(values)) / median:.0f} %)"


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def table_row(cells):
    return "| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |"
