#!/usr/bin/env python3
"""A client that nobody here wrote and that knows nothing of the API: Python's grpcio-reflection, from the package index.

usage: reflection_client.py MENDEL MODEL.onnx   (SKIP without a package index)

Every service, method and message is found by the server's reflection alone. With that, a model is uploaded and optimized, the job is
watched to its end, and the plan is fetched and has the hash that it is named by.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

PATIENCE = 300.0  # for what must happen, on a machine of any speed


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def run_in_environment(folder):
    """This script again, by a Python that has grpcio-reflection, against a server."""
    environment = folder / "venv"
    if subprocess.run([sys.executable, "-m", "venv", environment], capture_output=True, check=False).returncode != 0:
        skip("no venv (Debian: python3-venv)")
    install = [environment / "bin/pip", "--disable-pip-version-check", "-q", "install", "grpcio-reflection"]
    if subprocess.run(install, capture_output=True, check=False).returncode != 0:
        skip("no package index, or no grpcio-reflection in it")
    mendel, model = sys.argv[1:]
    log = folder / "log"
    with log.open("w") as stream:
        server = subprocess.Popen([mendel, "serve", "--listen", "127.0.0.1:0", "--metrics-listen", "", "--http-port", "none", "--data", folder / "data"],
                                  stderr=stream)
    try:
        end, port = time.monotonic() + PATIENCE, None
        while port is None:
            facts = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
            port = next((fact["port"] for fact in facts if fact["event"] == "serving"), None)
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        subprocess.run([environment / "bin/python", __file__, "--address", f"127.0.0.1:{port}", model], check=True)
    finally:
        server.terminate()
        server.wait()


class Api:
    """What reflection reports."""

    def __init__(self, address):
        import grpc
        from google.protobuf import message_factory
        from google.protobuf.descriptor_pool import DescriptorPool
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
        self.channel = grpc.insecure_channel(address)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        pool = DescriptorPool(database)
        self.make = message_factory.GetMessageClass
        self.services = {name: pool.FindServiceByName(name) for name in database.get_services()}

    def call(self, service, method, fields, many=False):
        """The answer, or the answers. `many`: the fields of several requests."""
        found = self.services[service].methods_by_name[method]
        request, answer = self.make(found.input_type), self.make(found.output_type)
        kind = f"{'stream' if many else 'unary'}_{'stream' if found.server_streaming else 'unary'}"
        caller = getattr(self.channel, kind)(f"/{service}/{method}", request_serializer=request.SerializeToString, response_deserializer=answer.FromString)
        return caller((request(**one) for one in fields) if many else request(**fields), timeout=PATIENCE)


def optimize(address, model):
    api = Api(address)
    methods = [method for service in api.services.values() for method in service.methods]
    for method in methods:  # each can be understood to its last field
        for message in (method.input_type, method.output_type):
            assert api.make(message)().SerializeToString() == b"", message.full_name
    print(f"{len(api.services)} services, {len(methods)} methods")
    data = model.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    blob = f"blobs/{digest}/{len(data)}"
    name, step = f"uploads/21234567-89ab-cdef-0123-456789abcdef/{blob}", 1 << 20
    parts = [{"resource_name": name, "write_offset": at, "data": data[at:at + step], "finish_write": at + step >= len(data)} for at in range(0, len(data), step)]
    assert api.call("google.bytestream.ByteStream", "Write", parts, many=True).committed_size == len(data)
    files = [{"path": "model.onnx", "digest": {"sha256": digest, "size_bytes": len(data)}}]
    made = api.call("mendel.v1.Models", "CreateModel", {"files": files, "main_file": "model.onnx"})
    operation = api.call("mendel.v1.Jobs", "SubmitJob", {"spec": {"optimize": {"model": made.name, "budget": {"time": {"seconds": 1}}}}})
    events = list(api.call("mendel.v1.Jobs", "WatchJob", {"name": operation.name}))
    job = api.call("mendel.v1.Jobs", "GetJob", {"name": operation.name})
    plan = api.call("mendel.v1.Plans", "GetPlan", {"name": job.plan})
    parts = api.call("google.bytestream.ByteStream", "Read", {"resource_name": plan.blob})
    fetched = hashlib.sha256(b"".join(part.data for part in parts)).hexdigest()
    assert plan.name == f"plans/{fetched}", f"{plan.name} is {fetched}"
    print(f"{len(events)} events, {plan.name}")


if sys.argv[1] == "--address":
    optimize(sys.argv[2], pathlib.Path(sys.argv[3]))
else:
    with tempfile.TemporaryDirectory() as scratch:
        run_in_environment(pathlib.Path(scratch))
