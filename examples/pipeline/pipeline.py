#!/usr/bin/env python3
"""Gives every new version in a Triton-layout model repository a certified plan; README.md says how."""
from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Iterator, Optional

from mendel.service import Client, MendelError, Plan, PlanError, load_plan


class Refused(Exception):
    """The plan did not pass a gate. The version is not tried again until the note is removed."""


@dataclasses.dataclass(frozen=True)
class Gates:
    max_bound_log2: float
    min_speedup: float
    probe: bool
    after_install: str


class Version:
    """One numbered folder of a model, and the files that say where it is."""

    def __init__(self, folder: pathlib.Path):
        self.model = folder / "model.onnx"
        self.plan = folder / "model.plan"
        self.facts = folder / "model.plan.json"
        self.refused = folder / "model.plan.refused"
        self.previous = folder / "model.plan.previous"
        self.incoming = folder / "model.plan.incoming"
        self.name = f"{folder.parent.name}/{folder.name}"

    def stamp(self) -> str:
        """Changes when the model's file does; cheap."""
        info = self.model.stat()
        return f"{info.st_size}/{info.st_mtime_ns}/{info.st_ino}"

    def is_new(self) -> bool:
        if not self.model.is_file():
            return False
        for note in (self.facts, self.refused):
            if note.exists() and json.loads(note.read_text()).get("stamp") == self.stamp():
                return False
        return True


def versions(repository: pathlib.Path) -> Iterator[Version]:
    for model in sorted(path for path in repository.iterdir() if path.is_dir()):
        for folder in sorted((path for path in model.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)):
            yield Version(folder)


def write_atomically(path: pathlib.Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def make_plan(client: Client, version: Version, options: argparse.Namespace) -> Plan:
    """From the model to a plan file beside it (`incoming`), gated by its certificate and its speed."""
    model = client.upload(version.model)
    # The same content and options give the same job: a pipeline that was killed comes back to it.
    key = hashlib.sha256(json.dumps([model, options.shapes, options.threads, options.budget]).encode()).hexdigest()
    job = client.submit(model, shapes=options.shapes, threads=options.threads, budget=options.budget, request_id=f"pipeline-{key}")
    ended = client.wait(job)
    plan = client.plan(ended.plan)
    if plan.bound_log2 > options.gates.max_bound_log2:
        raise Refused(f"the certificate's bound is 2^{plan.bound_log2:.0f}, more than 2^{options.gates.max_bound_log2:.0f}")
    if plan.unmeasured:
        raise Refused("the plan's times are predicted, not measured")
    if plan.speedup < options.gates.min_speedup:
        raise Refused(f"the plan is {plan.speedup:.2f}x as fast, less than {options.gates.min_speedup:.2f}x")
    verdict = client.verify_plan(plan.name, model, request_id=f"pipeline-verify-{plan.name[6:]}")
    if not verdict:
        raise Refused(f"the certificate does not replay: {verdict.kind}: {verdict.reason}")
    client.download(plan.name, version.incoming)
    return plan


def probe(version: Version) -> None:
    """Runs the incoming plan once; its inputs and outputs must be those of the plan in service."""
    import numpy

    try:
        with load_plan(version.incoming) as plan:
            random = numpy.random.default_rng(1)
            plan.run({v.name: random.standard_normal(v.shape).astype(v.numpy_dtype) for v in plan.inputs})
            if version.plan.exists():
                with load_plan(version.plan) as served:
                    if (served.inputs, served.outputs) != (plan.inputs, plan.outputs):
                        raise Refused("inputs or outputs are not those of the plan in service")
    except PlanError as error:
        raise Refused(f"the plan does not run here: {error}") from None


def install(version: Version, plan: Plan, gates: Gates) -> None:
    """Puts the incoming plan in service; whatever fails afterwards puts the former one back."""
    if version.plan.exists():
        # A hard link: the former plan keeps serving under its name until the rename replaces it.
        version.previous.unlink(missing_ok=True)
        os.link(version.plan, version.previous)
    os.replace(version.incoming, version.plan)
    if gates.after_install:
        result = subprocess.run(gates.after_install, shell=True, env={**os.environ, "MENDEL_PLAN": str(version.plan)})
        if result.returncode != 0:
            roll_back(version)
            raise Refused(f"rolled back: the command after the installation ended with {result.returncode}")
    write_atomically(version.facts, json.dumps({
        "stamp": version.stamp(), "plan": plan.name, "job": plan.job, "speedup": plan.speedup, "bound_log2": plan.bound_log2,
        "device": plan.device, "isa": plan.isa, "threads": plan.threads,
    }, indent=2) + "\n")


def roll_back(version: Version) -> None:
    if version.previous.exists():
        os.replace(version.previous, version.plan)
    else:
        version.plan.unlink()


def handle(client: Client, version: Version, options: argparse.Namespace) -> Optional[str]:
    """One version to its end; None when it has to be tried again later."""
    stamp = version.stamp()
    try:
        plan = make_plan(client, version, options)
        if options.gates.probe:
            probe(version)
        install(version, plan, options.gates)
        version.refused.unlink(missing_ok=True)
        return f"{version.name}: installed {plan.name}, {plan.speedup:.2f}x, bound 2^{plan.bound_log2:.0f}"
    except Refused as error:
        reason = str(error)
    except MendelError as error:
        if error.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "ABORTED"):
            print(f"{version.name}: later: {error}", file=sys.stderr)
            return None
        reason = str(error)
    version.incoming.unlink(missing_ok=True)
    write_atomically(version.refused, json.dumps({"stamp": stamp, "reason": reason}, indent=2) + "\n")
    return f"{version.name}: refused: {reason}"


def main(arguments: Optional[list] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=pathlib.Path)
    parser.add_argument("--server", help="HOST:PORT or unix:/PATH (default: MENDEL_SERVER)")
    parser.add_argument("--token-file")
    parser.add_argument("--shapes", default="", help="as mendel optimize --shapes")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--budget", type=float, default=60, help="seconds of search")
    parser.add_argument("--min-speedup", type=float, default=1.05)
    parser.add_argument("--max-bound-log2", type=float, default=-80)
    parser.add_argument("--probe", action="store_true", help="run the plan here once before it is installed")
    parser.add_argument("--after-install", default="", help="command; MENDEL_PLAN names the plan; failing rolls back")
    parser.add_argument("--interval", type=float, default=10, help="seconds between looks")
    parser.add_argument("--once", action="store_true", help="one look; exit code 1 when something has to be tried again")
    options = parser.parse_args(arguments)
    options.gates = Gates(options.max_bound_log2, options.min_speedup, options.probe, options.after_install)
    with Client(options.server, token_file=options.token_file) as client:
        while True:
            later = False
            for version in versions(options.repository):
                if not version.is_new():
                    continue
                line = handle(client, version, options)
                later = later or line is None
                if line:
                    print(line, flush=True)
            if options.once:
                return 1 if later else 0
            time.sleep(options.interval)


if __name__ == "__main__":
    sys.exit(main())
