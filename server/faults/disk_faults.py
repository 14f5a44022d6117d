"""The disk below a running server fills up, or becomes read-only as ext4 does after an error, while clients submit, watch, upload and download.

usage: disk_faults.py MENDEL MAKE_VERIFY_PAIRS   (PYTHONPATH: the package mendel.service; as root, with loop devices; skipped elsewhere)
MENDEL_FAULT_MOMENTS (4), MENDEL_FAULT_SEED (1) and MENDEL_FAULT_RECOVERY_SECONDS as service_faults.py takes them.

Full: the server lives, answers what is there, refuses what it cannot keep with a reason, and goes on when there is room. Read-only: it
lives and refuses; it is killed, the disk is checked (e2fsck) and mounted again, and it is started. After each: everything that it ever
acknowledged is there, no file has other bytes than its name says, and no job has failed.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from mendel.service import Client, MendelError
from replicas import run, skip
from service_faults import PATIENCE, Service, wait_for

DISK, DISK_PER_MOMENT = 64 << 20, 4 << 20  # bytes; clients keep uploading
REFUSALS = ("RESOURCE_EXHAUSTED", "UNAVAILABLE")  # of a client's calls while nothing can be written


def enter_namespace() -> None:
    """Goes on with mounts of our own, which go when we end."""
    if os.environ.get("MENDEL_DISK_INSIDE"):
        return
    if os.geteuid() != 0:
        skip("mounting needs root")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for program in ("mkfs.ext4", "e2fsck", "losetup", "unshare"):
        if shutil.which(program) is None:
            skip(f"no {program} (Debian: e2fsprogs, util-linux)")
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        skip("no mount namespaces here")
    os.environ["MENDEL_DISK_INSIDE"] = "1"
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


class Disk:
    """A small ext4 file system in a file, at `folder`."""

    def __init__(self, image: pathlib.Path, folder: pathlib.Path, size: int):
        self.folder = folder
        folder.mkdir()
        with open(image, "wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", "-m", "0", "-b", "4096", image)
        made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            skip(f"no loop device: {made.stderr.strip()}")
        self.device = made.stdout.strip()
        self.trigger = pathlib.Path("/sys/fs/ext4") / pathlib.Path(self.device).name / "trigger_fs_error"
        self.mount()

    def mount(self) -> None:
        run("mount", "-o", "errors=remount-ro", self.device, self.folder)

    def fill(self) -> None:
        """To the last block."""
        with open(self.folder / "filler", "wb") as file:
            size, end = 1 << 30, 0
            while size >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), end, size)
                    end += size
                except OSError:
                    size //= 2

    def free(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def break_down(self) -> None:
        """Every write fails with EROFS from here on, those of open files as well."""
        self.trigger.write_text("planted by disk_faults.py")

    def unmount(self) -> bool:
        return subprocess.run(["umount", self.folder], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def repair(self) -> None:
        done = subprocess.run(["e2fsck", "-fy", self.device], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), f"e2fsck: {done.stdout}{done.stderr}"
        self.mount()
        self.free()  # the journal may not have known yet that there was room again

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=False)
        subprocess.run(["losetup", "--detach", self.device], check=False)


class DiskService(Service):
    def __init__(self, mendel: str, folder: pathlib.Path, seed: int, disk: Disk):
        super().__init__(mendel, folder, seed, None)
        self.disk = disk

    def check_jobs(self, jobs) -> None:
        for name, state in self.ended.items():
            assert name in jobs and jobs[name].state == state, f"{name} was {state}"
        self.ended.update((name, job.state) for name, job in jobs.items() if job.done)
        for job in jobs.values():
            assert job.state != "FAILED", job

    def check_refusals(self, reads: bool) -> None:
        """What is there is answered (`reads`); what cannot be kept is refused."""
        assert self.server.poll() is None, f"the server ended with {self.server.returncode}"
        with Client(self.address, retry_time=0, call_timeout=PATIENCE) as client:
            try:
                if reads:
                    client.jobs(limit=1)
            except MendelError as error:
                raise AssertionError("a full disk keeps answers away") from error
            try:
                for _ in range(50):  # a full disk may have a few free pages
                    client.submit(self.model, budget=1, candidates=1, threads=1, request_id=str(uuid.uuid4()))
                raise AssertionError("50 jobs were accepted on a disk without room")
            except MendelError as error:
                assert error.code in REFUSALS, error

    def moment(self) -> str:
        time.sleep(self.rng.uniform(0, 1.5))
        kind = ("full", "read-only")[self.kills.total() % 2]
        if kind == "full":
            self.disk.fill()
            self.check_refusals(reads=True)
            time.sleep(self.rng.uniform(0, 1.5))
            self.disk.free()
            self.started = time.monotonic()
        else:
            self.disk.break_down()
            self.check_refusals(reads=False)  # none where a commit was under way
            time.sleep(self.rng.uniform(0, 1.5))
            self.kill_server()
        self.wait_for_server()
        self.check_kept()
        return kind

    def fsck(self) -> None:
        if self.server.poll() == -signal.SIGKILL:  # it was killed on a broken disk
            wait_for("the disk to be let go", self.disk.unmount)
            self.disk.repair()
        super().fsck()


def main() -> None:
    mendel, make_pairs = sys.argv[1:]
    enter_namespace()
    moments, seed = int(os.environ.get("MENDEL_FAULT_MOMENTS", "4")), int(os.environ.get("MENDEL_FAULT_SEED", "1"))
    print(f"MENDEL_FAULT_SEED={seed}, {moments} moments", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mendel-disk-"))
    disk = Disk(folder / "image", folder / "data", DISK + moments * DISK_PER_MOMENT)
    service = DiskService(mendel, folder, seed, disk)
    try:
        service.exercise(make_pairs, moments, "disk")
        print(f"{service.summary()}\nnothing that was acknowledged was lost")
    except BaseException:
        print(f"failed with MENDEL_FAULT_SEED={seed}; {service.summary()}; the last of the log:")
        print((folder / "server.log").read_text()[-3000:])
        raise
    finally:
        service.stop()
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
