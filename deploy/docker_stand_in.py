#!/usr/bin/env python3
"""As much of `docker` as README.md uses, by bubblewrap, so that its commands can be run where no container engine works.

  build -t NAME -f CONTAINERFILE CONTEXT   reads the last stage's settings; its files are those of MENDEL_IMAGE_ROOT, the root file system of
                                           an image that was built, or this machine's /usr and /etc with the install tree in MENDEL_STAGE
  run -d [...] NAME [ARGUMENT...]          the entry point as the image's user: without capabilities, read-only, with a process namespace of its own
  stop NAME                                SIGTERM to the entry point, and waits for its end
  probe                                    0 where bubblewrap works

State is kept in the folder MENDEL_STAND_IN. Ports are not mapped: the caller gives the commands a network namespace. An option that is not known
here is an error.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

SYSTEM = ("bin", "sbin", "lib", "lib64")


def read_containerfile(path):
    """ENV, USER, WORKDIR, VOLUME, ENTRYPOINT and CMD of the last stage."""
    text = re.sub(r"\\\n", " ", path.read_text())
    stage = re.split(r"^FROM .*$", text, flags=re.M)[-1]
    image = {"env": {}, "volumes": []}
    for word, rest in re.findall(r"^([A-Z]+) (.*)$", stage, re.M):
        if word == "ENV":
            image["env"].update(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "VOLUME":
            image["volumes"] += rest.split()
        elif word in ("ENTRYPOINT", "CMD"):
            image[word.lower()] = json.loads(rest)
        elif word in ("USER", "WORKDIR"):
            image[word.lower()] = rest.strip()
    return image


def build(state, arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("-t", required=True)
    parser.add_argument("-f", required=True)
    parser.add_argument("context")
    options = parser.parse_args(arguments)
    context = pathlib.Path(options.context)
    if not (context / "README.md").exists():
        sys.exit(f"{context} is not the repository")
    (state / f"{options.t}.image").write_text(json.dumps(read_containerfile(pathlib.Path(options.f))))


def files():
    """bubblewrap's words for the image's files, without what is written to."""
    root = os.environ.get("MENDEL_IMAGE_ROOT")
    if root:
        return ["--ro-bind", root, "/"]
    words = ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]
    for name in SYSTEM:
        path = pathlib.Path("/") / name
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    stage = os.environ.get("MENDEL_STAGE")
    return words + (["--ro-bind", f"{stage}/opt/mendel", "/opt/mendel"] if stage else [])


def shell(user):
    uid, gid = user.split(":")
    return ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--uid", uid, "--gid", gid, "--cap-drop", "ALL",
            "--clearenv", *files(), "--proc", "/proc", "--dev", "/dev"]


def run(state, arguments):
    parser = argparse.ArgumentParser()
    for flag in ("-d", "--rm", "--read-only"):
        parser.add_argument(flag, action="store_true", required=flag != "--rm")
    parser.add_argument("--name", required=True)
    parser.add_argument("--tmpfs", action="append", default=[])
    parser.add_argument("--cap-drop", choices=["ALL"], required=True)
    for option in ("-v", "-p", "-e"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    image = json.loads((state / f"{options.image}.image").read_text())
    words = shell(image["user"])
    volumes = dict(reversed(pair.split(":")) for pair in options.v)
    for place in {**dict.fromkeys(image["volumes"]), **volumes}:
        folder = state / f"volume-{volumes.get(place) or 'unnamed'}"
        folder.mkdir(exist_ok=True)
        words += ["--bind", str(folder), place]
    for place in options.tmpfs:
        words += ["--tmpfs", place]
    for name, value in {**image["env"], **dict(pair.split("=", 1) for pair in options.e)}.items():
        words += ["--setenv", name, value]
    for port in options.p:
        if len({*port.split(":")[-2:]}) != 1:
            sys.exit(f"ports are not mapped: {port}")
    words += ["--remount-ro", "/", "--chdir", image["workdir"], "--", *image["entrypoint"], *(options.arguments or image["cmd"])]
    reader, writer = os.pipe()
    with (state / f"{options.name}.log").open("wb") as log:
        started = subprocess.Popen([words[0], "--info-fd", str(writer), *words[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   pass_fds=[writer], start_new_session=True)
    os.close(writer)
    with os.fdopen(reader) as info:
        text = info.read()
    if not text:
        sys.exit(f"bubblewrap ended with {started.wait()}: {(state / f'{options.name}.log').read_text()}")
    (state / f"{options.name}.pid").write_text(str(json.loads(text)["child-pid"]))
    print(options.name)


def stop(state, arguments):
    pid = int((state / f"{arguments[0]}.pid").read_text())
    os.kill(pid, 15)
    while pathlib.Path(f"/proc/{pid}").exists():  # the caller's patience is the limit
        time.sleep(0.05)


def probe():
    sys.exit(subprocess.run([*shell("10001:10001"), "--", "/usr/bin/test", "-x", "/usr/bin/tini"]).returncode)


def main():
    if sys.argv[1] == "probe":
        probe()
    state = pathlib.Path(os.environ["MENDEL_STAND_IN"])
    state.mkdir(exist_ok=True)
    {"build": build, "run": run, "stop": stop}[sys.argv[1]](state, sys.argv[2:])


if __name__ == "__main__":
    main()
