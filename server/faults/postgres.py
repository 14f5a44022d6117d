"""A PostgreSQL of Debian's newest version in a folder of its own, for tests that take it away."""
import os
import pathlib
import signal
import subprocess
import time
import urllib.parse

NOBODY = 65534    # PostgreSQL refuses to run as root
PATIENCE = 600.0  # for what must happen, on a machine of any speed
PORT = 5432


def programs():
    """Where initdb and postgres are; None where they are not (Debian: postgresql)."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Postgres:
    """Makes the database in `folder`/postgres and starts it. `settings`: words for postgres; `rules`: lines for pg_hba.conf."""

    def __init__(self, folder, settings=(), rules=""):
        self.folder, self.programs, self.settings = folder / "postgres", programs(), settings
        self.folder.mkdir()
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.log = (folder / "postgres.log").open("a")
        subprocess.run([self.programs / "initdb", "-D", self.folder / "data", "-A", "trust", "-U", "mendel", "--no-sync", "--locale=C", "-E", "UTF8"],
                       check=True, **self.how())
        with (self.folder / "data/pg_hba.conf").open("a") as lines:
            lines.write(rules)
        self.start()
        self.wait()

    def start(self):
        # Nobody pulls the plug here: without fsync the test is quick.
        self.process = subprocess.Popen([self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-c", "fsync=off", "-c",
                                         "dynamic_shared_memory_type=mmap", "-c", f"port={PORT}", *self.settings], **self.how())

    def wait(self):
        """Until it takes connections."""
        end = time.monotonic() + PATIENCE
        while subprocess.run([self.programs / "pg_isready", "-h", self.folder, "-p", str(PORT)], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for PostgreSQL"
            time.sleep(0.05)

    def url(self):
        """By its socket."""
        return f"postgresql://mendel@{urllib.parse.quote(str(self.folder), safe='')}:{PORT}/postgres"

    def how(self):
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        return {**user, "cwd": self.folder, "stdout": self.log, "stderr": self.log}

    def kill(self):
        """kill -9 of all of it. The first process is stopped before, so that it starts no more while they are looked for."""
        self.process.send_signal(signal.SIGSTOP)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in [*map(int, children), self.process.pid]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # does not wait for its clients
        self.process.wait()
        self.log.close()
