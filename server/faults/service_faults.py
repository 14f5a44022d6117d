"""kill -9 of the whole server, of its workers, of clients and of PostgreSQL at random moments, while clients submit, watch, upload and
download: first with jobs in SQLite, then with jobs in PostgreSQL where it is installed.

usage: service_faults.py MENDEL MAKE_VERIFY_PAIRS   (PYTHONPATH: the package mendel.service)
MENDEL_FAULT_MOMENTS (8, shared by the stores), MENDEL_FAULT_SEED (1), MENDEL_FAULT_RECOVERY_SECONDS (0: printed only) say how often,
where, and how long it may take from the start of a killed server or database until the service answers.

After every kill of the server: its workers are gone, and the folder is consistent (mendel fsck: no file has other bytes than its name
says). After every kill of the server or of PostgreSQL: once the service answers again everything that it ever acknowledged is there.
After every kill of a client: no plan lies half-written where it was requested. At the end every job has ended, no request became two
jobs, and none failed.
"""
import collections
import contextlib
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, Optional, Set

from mendel.service import Client, Job, MendelError
from mendel.service._messages import BYTE_STREAM, MODELS, Method
from postgres import Postgres, programs

CLIENTS = 3
SLOW = 5.0  # seconds; recoveries above it are counted
PATIENCE = 300.0  # for what must happen, on a machine of any speed
HERE = pathlib.Path(__file__).parent


def descendants(pid: int) -> List[int]:
    """Living processes below `pid`."""
    children: Dict[int, List[int]] = collections.defaultdict(list)
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children[int(parent)].append(int(path.parent.name))
    found, rest = [], [pid]
    while rest:
        below = children[rest.pop()]
        found += below
        rest += below
    return found


def works(pid: int) -> bool:
    """A living process that executes jobs. (A bubblewrap may stay until its job is begun again: sandbox_bubblewrap.cc.)"""
    with contextlib.suppress(OSError):
        name, _, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
        return name == "mendel" and rest.split()[0] != "Z"
    return False


def naming(folder: pathlib.Path) -> List[str]:
    """Command lines that name the folder."""
    lines = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text(errors="replace").replace("\0", " "))
    return [line for line in lines if str(folder) in line]


def wait_for(what: str, condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(0.02)


class Service:
    """The server under test and its clients."""

    def __init__(self, mendel: str, folder: pathlib.Path, seed: int, database: Optional[Postgres]):
        self.mendel, self.folder, self.rng, self.database = mendel, folder, random.Random(seed), database
        self.store = ["--data", folder / "data"] + (["--store", database.url()] if database else [])
        self.address = f"unix:{folder}/socket"
        self.server: subprocess.Popen = None
        self.model = ""
        self.clients: List[subprocess.Popen] = []
        self.kills = collections.Counter()
        self.recoveries: List[float] = []
        self.ended: Dict[str, str] = {}
        self.downloaded: Set[str] = set()

    def start_server(self) -> None:
        with open(self.folder / "server.log", "a") as log:
            self.server = subprocess.Popen(
                [self.mendel, "serve", "--listen", self.address, *self.store, "--metrics-listen", "", "--http-port", "none", "--lease-seconds",
                 "3", "--max-attempts", "1000000", "--concurrent-jobs", "2", "--drain-seconds", "60"], stdout=log, stderr=log)
        self.started = time.monotonic()

    def wait_for_server(self) -> None:
        """Until it answers a question about its store."""
        def answers() -> bool:
            assert self.server.poll() is None, f"the server ended with {self.server.returncode}"
            # A channel that failed waits before it connects again; a new one does not.
            with Client(self.address, retry_time=0, call_timeout=PATIENCE) as client:
                with contextlib.suppress(MendelError):
                    client.jobs(limit=1)
                    return client.health()
            return False
        wait_for("the server", answers)
        self.recoveries.append(time.monotonic() - self.started)

    def start_client(self, number: int) -> subprocess.Popen:
        with open(self.folder / f"client-{number}.log", "a") as log:
            return subprocess.Popen([sys.executable, HERE / "client.py", self.folder, str(number), str(self.rng.getrandbits(60))],
                                    stdout=log, stderr=log, start_new_session=True)

    def kill_server(self) -> None:
        workers = descendants(self.server.pid)
        self.server.kill()
        self.server.wait()
        wait_for("the workers of a dead server to end", lambda: not any(map(works, workers)))
        self.fsck()
        self.start_server()

    def fsck(self) -> None:
        done = subprocess.run([self.mendel, "fsck", *self.store], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"fsck: {done.stdout}{done.stderr}"

    def kill_worker(self) -> bool:
        workers = descendants(self.server.pid)
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(workers), signal.SIGKILL)
        return bool(workers)

    def kill_client(self) -> None:
        number = self.rng.randrange(CLIENTS)
        self.check_client(number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.clients[number].pid, signal.SIGKILL)
        self.clients[number].wait()
        self.check_files(number)
        self.clients[number] = self.start_client(number)

    def check_files(self, number: int) -> None:
        """Plans that a killed client leaves are whole: a download has its name's hash, and the command's is one of the server's."""
        with Client(self.address, retry_time=PATIENCE, call_timeout=PATIENCE) as client:
            plans = {plan.name for plan in client.plans(limit=0)}
        for path in (self.folder / f"client-{number}").glob("*.plan"):
            name = hashlib.sha256(path.read_bytes()).hexdigest()
            assert path.stem == name or (path.stem == "command" and f"plans/{name}" in plans), f"{path} is not whole"

    def kill_database(self) -> None:
        self.database.kill()
        time.sleep(self.rng.uniform(0, 1))  # without it for a while
        self.database.start()
        self.started = time.monotonic()

    def check_client(self, number: int) -> None:
        code = self.clients[number].poll()
        assert code is None, f"client {number} ended with {code}: {(self.folder / f'client-{number}.log').read_text()[-2000:]}"

    def said(self) -> List[List[str]]:
        lines = []
        for path in self.folder.glob("said-*"):
            lines += [line.split() for line in path.read_text().splitlines()]
        return lines

    def check_kept(self) -> None:
        """Everything that was acknowledged so far, against what the server has."""
        said = self.said()  # before the server is asked
        with Client(self.address, retry_time=PATIENCE, call_timeout=PATIENCE) as client:
            jobs = {job.name: job for job in client.jobs(limit=0)}
            plans = {plan.name: plan for plan in client.plans(limit=0)}
            models = self.models(client)
            requests: Dict[str, str] = {}
            for kind, name, *more in said:
                if kind == "job":
                    assert more[0] in jobs, f"lost: {name} {more}"
                    assert requests.setdefault(name, more[0]) == more[0], f"two jobs of {name}"
                elif kind == "ended":
                    assert jobs[name].state == more[0], f"{name} was {more[0]}: {jobs[name]}"
                else:
                    assert name in (plans if kind == "plan" else models), f"lost: {name}"
            self.check_jobs(jobs)
            for name in plans.keys() - self.downloaded:
                self.check_plan(client, plans[name].blob, name)

    @staticmethod
    def models(client: Client) -> Set[str]:
        method, names = Method(MODELS, "ListModels"), set()
        request = method.request(page_size=1000)
        while True:
            page = client._channel.call(method, request)
            names.update(model.name for model in page.models)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return names

    def check_jobs(self, jobs: Dict[str, Job]) -> None:
        for name, state in self.ended.items():
            assert name in jobs and jobs[name].state == state, f"{name} was {state}"
        self.ended.update((name, job.state) for name, job in jobs.items() if job.done)
        for job in jobs.values():
            assert job.state != "FAILED" or "worker crashed" in job.error or "memory" in job.error, job

    def check_plan(self, client: Client, blob: str, name: str) -> None:
        method = Method(BYTE_STREAM, "Read")
        digest = hashlib.sha256()
        for part in client._channel.read(method, method.request(resource_name=blob)):
            digest.update(part.data)
        assert f"plans/{digest.hexdigest()}" == name, f"{name} is not whole"
        self.downloaded.add(name)

    def moment(self) -> str:
        """One kill, at a random moment of whatever is under way; what was killed."""
        time.sleep(self.rng.uniform(0, 1.5))
        kinds = ("server", "worker", "client", *(["database"] if self.database else []))  # each at least once
        done = self.kills.total()
        kind = kinds[done] if done < len(kinds) else self.rng.choice((*kinds, "server"))
        if kind == "worker":
            wait_for("a worker", self.kill_worker)
        elif kind == "client":
            self.kill_client()
        elif kind == "database":
            self.kill_database()
        else:
            self.kill_server()
            if self.rng.random() < 0.2:  # once more while it starts
                time.sleep(self.rng.uniform(0, 0.3))
                self.kill_server()
        if kind in ("server", "database"):
            self.wait_for_server()
            self.check_kept()
        return kind

    def finish(self) -> None:
        (self.folder / "stop").touch()
        for number, client in enumerate(self.clients):
            code = client.wait(PATIENCE)
            assert code == 0, f"client {number} ended with {code}: {(self.folder / f'client-{number}.log').read_text()[-2000:]}"
        with Client(self.address, retry_time=PATIENCE) as client:
            left = None
            while left is None or left:  # as long as jobs end, nothing is stuck
                before = left
                wait_for("a job to end", lambda: len([job for job in client.jobs(limit=0) if not job.done]) < (before or 1 << 60))
                left = len([job for job in client.jobs(limit=0) if not job.done])
        self.check_kept()
        self.server.terminate()
        assert self.server.wait(PATIENCE) == 0, "the server did not drain"
        wait_for("the last processes to end", lambda: not naming(self.folder / "data" / "work"))
        self.fsck()

    def exercise(self, make_pairs: str, moments: int, title: str) -> None:
        """Everything: clients at work, the moments, the end."""
        subprocess.run([make_pairs, self.folder], check=True, stdout=subprocess.DEVNULL)
        os.environ.update(MENDEL=self.mendel, MENDEL_SERVER=self.address)
        self.start_server()
        self.wait_for_server()
        with Client() as client:
            self.model, *others = [client.upload(self.folder / f"{name}.onnx") for name in ("net", "rewritten", "one_weight")]
        (self.folder / "models").write_text("\n".join([self.model, *others]))
        self.clients = [self.start_client(number) for number in range(CLIENTS)]
        wait_for("the first acknowledgements", self.said)
        for moment in range(moments):
            kind = self.moment()
            self.kills[kind] += 1
            for number in range(CLIENTS):
                self.check_client(number)
            if moment % 20 == 19:
                print(f"{title}, moment {moment + 1} ({kind}): {self.summary()}", flush=True)
        self.finish()
        allowed = float(os.environ.get("MENDEL_FAULT_RECOVERY_SECONDS", "0"))
        assert not allowed or max(self.recoveries) <= allowed, "a recovery took too long"

    def stop(self) -> None:
        for client in self.clients:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
        if self.server is not None and self.server.poll() is None:
            self.server.kill()

    def summary(self) -> str:
        states = collections.Counter(self.ended.values())
        said = collections.Counter(line[0] for line in self.said())
        slow = sorted(self.recoveries) or [0.0]
        return (f"kills: {dict(self.kills)}; acknowledged: {dict(said)}; jobs ended: {dict(states)}; plans checked: {len(self.downloaded)}; "
                f"recovery of {len(slow)} starts: median {slow[len(slow) // 2]:.2f} s, slowest {slow[-1]:.2f} s, "
                f"above {SLOW:.0f} s: {sum(seconds > SLOW for seconds in slow)}")


def run(mendel: str, make_pairs: str, store: str, moments: int, seed: int) -> None:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mendel-faults-"))
    folder.chmod(0o711)  # PostgreSQL's user may be another
    database = Postgres(folder, ["-c", "listen_addresses="]) if store == "PostgreSQL" else None
    service = Service(mendel, folder, seed, database)
    try:
        service.exercise(make_pairs, moments, store)
        failed = sum(state == "FAILED" for state in service.ended.values())
        assert failed == 0, f"{failed} jobs failed"
        print(f"{store}: {service.summary()}", flush=True)
    except BaseException:
        print(f"failed with {store}, MENDEL_FAULT_SEED={seed}; {service.summary()}; the last of the logs:")
        for log in (folder / "server.log", folder / "postgres.log"):
            print(log.read_text()[-3000:] if log.exists() else "")
        raise
    finally:
        service.stop()
        if database:
            database.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    mendel, make_pairs = sys.argv[1:]
    stores = ["SQLite"] + (["PostgreSQL"] if programs() else [])
    moments = int(os.environ.get("MENDEL_FAULT_MOMENTS", "8")) // len(stores)
    seed = int(os.environ.get("MENDEL_FAULT_SEED", "1"))
    print(f"MENDEL_FAULT_SEED={seed}, {moments} moments each with {' and '.join(stores)}", flush=True)
    for store in stores:
        run(mendel, make_pairs, store, moments, seed)
    print("nothing that was acknowledged was lost")


if __name__ == "__main__":
    main()
