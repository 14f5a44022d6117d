#!/usr/bin/env python3
"""Replicas of the server in network namespaces of their own, with their jobs in one PostgreSQL; links are cut in the middle of jobs.

usage: replicas.py MENDEL MODEL.onnx   (as root, with iproute2 and Debian's postgresql; skipped with a reason elsewhere)

The first replica only answers calls, the others work. A job is submitted through the first, and the replica that begins it loses its link:
its lease runs out, the other takes the job over with a new fence and ends it, and whatever the first one did is thrown away (when its
lease ended while it worked) or refused (when its result came late). Every replica then reports the same job and the same, only plan.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from postgres import PATIENCE, PORT, Postgres, programs



def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def wait_for(what, step):
    end = time.monotonic() + PATIENCE
    while True:
        found = step()
        if found:
            return found
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(0.05)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def enter_namespaces():
    """Goes on in a network, a /run and among processes of our own: nothing of the machine's is touched, and all goes when we end."""
    if os.environ.get("MENDEL_REPLICAS_INSIDE"):
        return
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            skip(f"no {program} (Debian: iproute2, util-linux)")
    probe = ("mount -t tmpfs tmpfs /run && ip link set lo up && ip netns add probe && ip link add probe type veth peer name eth0 netns probe "
             "&& ip netns exec probe ip link")
    done = subprocess.run([*unshare, "sh", "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"no network namespaces here: {done.stderr.strip()}")
    os.environ["MENDEL_REPLICAS_INSIDE"] = "1"
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


class Replica:
    """`mendel serve` in the namespace `replica<number>`, reached at 10.77.<number>.2 over a link that can be cut."""

    def __init__(self, mendel, folder, number, lease, jobs):
        self.mendel, self.folder, self.name = mendel, folder, f"replica{number}"
        self.link, self.own, self.host = f"link{number}", f"10.77.{number}.1", f"10.77.{number}.2"
        self.address = f"{self.host}:8470"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "address", "add", f"{self.own}/24", "dev", self.link)
        run("ip", "link", "set", self.link, "up")
        for words in (["address", "add", f"{self.host}/24", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
            run("ip", "-n", self.name, *words)
        # The store's own patience with a database that is silent would only make the test longer.
        store = f"{self.store()}?tcp_user_timeout=2000&connect_timeout=2"
        self.log = (folder / f"{self.name}.log").open("a")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.name, mendel, "serve", "--listen", f"{self.host}:8470", "--metrics-listen", f"{self.host}:8471", "--http-port",
             "none", "--insecure-bind", "--anonymous-role", "admin", "--data", folder / "data", "--store", store, "--lease-seconds", str(lease),
             "--concurrent-jobs", str(jobs), "--drain-seconds", "60"], stdout=self.log, stderr=self.log)
        wait_for(self.name, self.answers)

    def store(self):
        return f"postgresql://mendel@{self.own}:{PORT}/postgres"

    def answers(self):
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}: {pathlib.Path(self.log.name).read_text()}"
        return subprocess.run([self.mendel, "health", "--server", self.address], capture_output=True, check=False).returncode == 0

    def command(self, *words):
        return json.loads(run(self.mendel, *words, "--json", "--server", self.address))

    def job(self, name):
        return self.command("jobs", name)["job"]

    def metric(self, name):
        """A sample of the metrics page, which is asked from within: a cut link does not matter."""
        page = run("ip", "netns", "exec", self.name, sys.executable, "-c",
                   f"import urllib.request; print(urllib.request.urlopen('http://{self.host}:8471/metrics', timeout=120).read().decode())")
        found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def cut(self):
        run("ip", "link", "set", self.link, "down")

    def reconnect(self):
        run("ip", "link", "set", self.link, "up")

    def stop(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.log.close()
        run("ip", "netns", "delete", self.name)
        return code


class Cluster:
    """One replica that answers and two that work."""

    def __init__(self, mendel, folder, lease):
        self.mendel, self.folder = mendel, folder
        self.replicas = [Replica(mendel, folder, number, lease, int(number > 1)) for number in (1, 2, 3)]
        self.front, *self.workers = self.replicas

    def cut_in_the_middle(self, model, budget, seed):
        """Submits a job and cuts the link of the replica that began it. The job, who was cut off, and who was not."""
        job = self.front.command("submit", model, "--budget", budget, "--threads", "1", "--seed", str(seed))["job"]["name"]
        wait_for("progress", lambda: self.front.job(job).get("progress", {}).get("phase"))
        running = [worker for worker in self.workers if worker.metric("mendel_workers_running") == 1]
        assert len(running) == 1, f"{len(running)} replicas run the job"
        running[0].cut()
        assert self.front.job(job)["state"] == "running", "the job has ended before the link was cut"
        return job, running[0], next(worker for worker in self.workers if worker is not running[0])

    def check_end(self, job, lost, other, plans):
        """The job was ended by the other replica, once, and everybody says so."""
        reported = self.front.job(job)
        assert reported["state"] == "succeeded" and reported["attempts"] == 2, reported
        assert other.metric('mendel_jobs_ended_total{state="succeeded"}') == 1
        assert lost.metric('mendel_jobs_started_total{device="cpu"}') == 1 and lost.metric('mendel_jobs_ended_total{state="succeeded"}') == 0
        for replica in self.replicas:
            assert replica.job(job) == reported, f"{replica.name} reports another job"
            listed = [plan["name"] for plan in replica.command("plans", "ls")["plans"]]
            assert len(listed) == plans and reported["plan"] in listed, f"{replica.name} lists {listed}"
            fetched = self.folder / f"{replica.name}.plan"
            run(self.mendel, "plans", "get", reported["plan"], "-o", str(fetched), "--server", replica.address)
            assert f"plans/{run('sha256sum', str(fetched))[:64]}" == reported["plan"]
        done = subprocess.run([self.mendel, "fsck", "--data", self.folder / "data", "--store", self.front.store()], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self):
        codes = [replica.stop() for replica in self.replicas]
        assert codes == [0, 0, 0], f"exit codes {codes}"


def check_lost_at_work(mendel, model, folder):
    """The lease ends while the cut-off worker still searches."""
    cluster = Cluster(mendel, folder, 5)
    job, lost, other = cluster.cut_in_the_middle(model, "30s", 1)
    wait_for("the other replica", lambda: other.metric("mendel_workers_running") == 1)
    assert cluster.front.job(job)["attempts"] == 2
    wait_for("the cut-off replica to stop its worker", lambda: lost.metric('mendel_leases_lost_total{at="work"}') == 1)
    lost.reconnect()
    wait_for("the job's end", lambda: cluster.front.job(job)["state"] != "running")
    wait_for("the replica whose link is back", lost.answers)
    cluster.check_end(job, lost, other, 1)
    cluster.stop()


def check_late_result(mendel, model, folder):
    """The cut-off replica has a result before its lease ends, and brings it when another has ended the job."""
    cluster = Cluster(mendel, folder, 45)
    job, lost, other = cluster.cut_in_the_middle(model, "4s", 2)
    wait_for("the other replica", lambda: other.metric("mendel_workers_running") == 1)
    wait_for("the job's end", lambda: cluster.front.job(job)["state"] == "succeeded")
    assert lost.metric("mendel_workers_running") == 1, "the cut-off replica still has its result"
    lost.reconnect()
    wait_for("the late result", lambda: lost.metric("mendel_workers_running") == 0)
    assert lost.metric('mendel_leases_lost_total{at="result"}') == 1, "it was refused"
    wait_for("the replica whose link is back", lost.answers)
    cluster.check_end(job, lost, other, 2)
    cluster.stop()


def main():
    enter_namespaces()
    if programs() is None:
        skip("no initdb (Debian: postgresql)")
    mendel, model = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:])
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("ip", "link", "set", "lo", "up")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mendel-replicas-"))
    folder.chmod(0o755)
    postgres = None
    try:
        postgres = Postgres(folder, ["-c", "listen_addresses=*"], "host all all 10.77.0.0/16 trust\n")
        for check in (check_lost_at_work, check_late_result):
            check(mendel, model, folder)
            print(f"{check.__name__}: good", flush=True)
    except BaseException:
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()[-3000:]}", flush=True)
        raise
    finally:
        if postgres is not None:
            postgres.stop()
        shutil.rmtree(folder)  # servers that are left end with this process


if __name__ == "__main__":
    main()
