"""Puts the service's descriptors (service.binpb) into the package: the messages are made of them when it is imported.

With a library in the package (scripts/wheel) the wheel is for its platform, and for every Python 3."""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parent.parent / "proto"
SHIPPED = HERE / "mendel" / "service" / "service.binpb"  # in a source distribution only
FILES = [
    "google/bytestream/bytestream.proto",
    "google/longrunning/operations.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
    "grpc/health/v1/health.proto",
    "mendel/v1/jobs.proto",
    "mendel/v1/models.proto",
    "mendel/v1/plans.proto",
    "mendel/v1/verifier.proto",
]


def write_descriptors(target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not PROTOS.is_dir():
        if target != SHIPPED:
            shutil.copyfile(SHIPPED, target)
        return
    options = [f"--proto_path={PROTOS}", "--include_imports", f"--descriptor_set_out={target}", *FILES]
    protoc = os.environ.get("PROTOC")
    if protoc:
        subprocess.run([protoc, *options], check=True)
        return
    import grpc_tools  # a build requirement
    from grpc_tools import protoc as bundled

    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    if bundled.main(["protoc", f"--proto_path={well_known}", *options]) != 0:
        sys.exit("setup.py: protoc failed")


class BuildPy(build_py):
    def run(self):
        super().run()
        write_descriptors(pathlib.Path(self.build_lib) / "mendel" / "service" / "service.binpb")


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_descriptors(pathlib.Path(base_dir) / "mendel" / "service" / "service.binpb")


COMMANDS = {"build_py": BuildPy, "sdist": Sdist}
OPTIONS = {}
if (HERE / "mendel" / "libmendel.so.0").exists():
    from wheel.bdist_wheel import bdist_wheel

    class BinaryDistribution(Distribution):
        def has_ext_modules(self):
            return True

    class BinaryWheel(bdist_wheel):
        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    COMMANDS["bdist_wheel"] = BinaryWheel
    OPTIONS["distclass"] = BinaryDistribution

# Setuptools builds outside of the checkout, which stays as it was.
SCRATCH = tempfile.mkdtemp(prefix="mendel-build-")
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
setup(cmdclass=COMMANDS, options={"build": {"build_base": f"{SCRATCH}/build"}, "egg_info": {"egg_base": SCRATCH}}, **OPTIONS)
