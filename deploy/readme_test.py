#!/usr/bin/env python3
"""Runs the fenced commands of a document as they stand there. usage: readme_test.py SECTION BUILD_FOLDER

SECTION is "command-line", "python", "grpc" or "container" of README.md, or the name of a file in docs/tutorials without its ending, whose
fences of language text are output and not run. The commands see a folder of their own with the repository's examples/ and deploy/,
BUILD_FOLDER's programs first on the PATH, and variables that lead the server to a free port and to that folder. For "container"
`docker` is docker_stand_in.py, and the default ports are free because the commands have a network namespace of their own.
MENDEL_IMAGE_ROOT: the root file system of a built image, for that one. What cannot be run here is reported as SKIP (exit code 77).
"""
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TUTORIALS = ROOT / "docs" / "tutorials"
IN_USE = "address already in use"


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def blocks(section):
    """(language, text) of the section's fences; each must be of a language that can be run."""
    if (TUTORIALS / f"{section}.md").exists():
        fences = re.findall(r"^```(\w*)\n(.*?)^```$", (TUTORIALS / f"{section}.md").read_text(), re.M | re.S)
        return runnable(f"docs/tutorials/{section}.md", [(language, text) for language, text in fences if language != "text"])
    parts = re.split(r"^### (.*)$", (ROOT / "README.md").read_text(), flags=re.M)
    bodies = [body for title, body in zip(parts[1::2], parts[2::2]) if title.lower().replace(" ", "-") == section]
    if len(bodies) != 1:
        sys.exit(f"README.md has {len(bodies)} sections '{section}'")
    return runnable(f"README.md, {section}", re.findall(r"^```(\w+)\n(.*?)^```$", bodies[0].split("\n## ")[0], re.M | re.S))


def runnable(place, found):
    if not found or {language for language, _ in found} - {"sh", "python"}:
        sys.exit(f"{place}: no fences of sh or python alone: {found}")
    return found


def loopback_of_our_own():
    """Enters a new network namespace and brings up its loopback."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_network, new_user = 0x40000000, 0x10000000
    if libc.unshare(new_network) != 0:
        uid = os.getuid()
        if libc.unshare(new_network | new_user) != 0:
            skip(f"no network namespace can be made here ({os.strerror(ctypes.get_errno())})")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sh", b"lo", 1)  # IFF_UP
        fcntl.ioctl(any_socket, 0x8914, up)  # SIOCSIFFLAGS


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def prepare(folder, build):
    """The folder that the commands run in, and their environment."""
    for name in ("examples", "deploy", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MENDEL_") or key == "MENDEL_PYTHON"}
    environment["PATH"] = f"{folder / 'bin'}:{build}:{environment['PATH']}"
    environment["PYTHONPATH"] = str(build / "client" / "python" / "package")
    environment["MENDEL_LIBRARY"] = str(build / "client" / "c_api" / "libmendel.so.0")
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    return environment


def prepare_server(folder, environment):
    port = free_port()
    environment.update(MENDEL_LISTEN=f"127.0.0.1:{port}", MENDEL_SERVER=f"127.0.0.1:{port}", MENDEL_DATA=str(folder / f"data-{port}"),
                       MENDEL_METRICS_LISTEN="", MENDEL_HTTP_PORT="none")


def prepare_container(folder, build, environment):
    if shutil.which("bwrap") is None:
        skip("bubblewrap is not installed, and stands in for the container tool")
    root = os.environ.get("MENDEL_IMAGE_ROOT", "")
    loopback_of_our_own()
    stand_in = folder / "bin" / "docker"
    stand_in.symlink_to(HERE / "docker_stand_in.py")
    if subprocess.run([stand_in, "probe"], env=environment).returncode != 0:
        skip("bubblewrap cannot make its namespaces here, or tini is not installed (Debian: tini)")
    environment.update(MENDEL_STAND_IN=str(folder / "engine"), MENDEL_IMAGE_ROOT=root)
    if not root:
        subprocess.run(["cmake", "--install", build, "--prefix", "/opt/mendel"], env={**environment, "DESTDIR": str(folder / "stage")}, check=True,
                       stdout=subprocess.DEVNULL)
        environment["MENDEL_STAGE"] = str(folder / "stage")


def python_with(modules):
    for python in [os.environ.get("MENDEL_PYTHON"), "/usr/bin/python3", "python3"]:
        if python and subprocess.run([python, "-c", f"import {modules}"], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def script(found, folder):
    """All blocks as one shell script that ends at the first command that fails."""
    lines = ["set -eu"]
    for number, (language, text) in enumerate(found):
        if language == "sh":
            lines.append(text)
            continue
        modules = "grpc, google.protobuf" if "mendel.service" in text else "numpy"
        python = python_with(modules)
        if python is None:
            print(f"SKIP: no Python with {modules} (Debian: python3-grpcio, python3-numpy)")
            continue
        (folder / f"block{number}.py").write_text(text)
        lines.append(f"{python} block{number}.py")
    return "\n".join(lines)


def run(text, folder, environment):
    """Exit code and output; whatever the commands left running is asked to end, and awaited."""
    with (folder / "output").open("wb") as output:
        shell = subprocess.Popen(["bash", "-c", text], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 start_new_session=True)
        code = shell.wait()
        if (folder / "engine").exists():
            stop_container(folder, environment)
        try:
            os.killpg(shell.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
    return code, (folder / "output").read_text(errors="replace")


def stop_container(folder, environment):
    log = folder / "engine" / "mendel.log"
    stopped = subprocess.run([folder / "bin" / "docker", "stop", "mendel"], env=environment).returncode
    text = log.read_text(errors="replace") if log.exists() else "there was no container"
    if stopped != 0 or '"drained"' not in text:
        print((folder / "output").read_text(errors="replace"))
        sys.exit(f"FAIL: the container did not drain\n{text[-4000:]}")


def main():
    section, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what the shell leaves running can be awaited
    found = blocks(section)
    with tempfile.TemporaryDirectory(prefix="mendel-readme-") as name:
        folder = pathlib.Path(name)
        environment = prepare(folder, build)
        if section == "container":
            prepare_container(folder, build, environment)
        for _ in range(5):  # another program may take the port first
            if section == "grpc":
                prepare_server(folder, environment)
            code, output = run(script(found, folder), folder, environment)
            if section != "grpc" or IN_USE not in output.lower():
                break
        print(output)
        if code != 0:
            sys.exit(f"FAIL: {section}: the commands end with {code}")
    print(f"{section}: runs as written")


if __name__ == "__main__":
    main()
