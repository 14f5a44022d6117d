"""A server in this process over real gRPC, for the client's tests: blobs in memory, jobs as the test sets them, faults on demand."""
import concurrent.futures
import hashlib

import grpc

from mendel.service._messages import BYTE_STREAM, HEALTH, JOBS, MODELS, PLANS, Method, message

UNARY = [(MODELS, "FindMissingBlobs"), (MODELS, "CreateModel"), (JOBS, "SubmitJob"), (JOBS, "GetJob"), (JOBS, "ListJobs"),
         (JOBS, "CancelJob"), (PLANS, "GetPlan"), (PLANS, "ListPlans"), (BYTE_STREAM, "QueryWriteStatus"), (HEALTH, "Check")]


class Fault(Exception):
    """What the server answers instead."""

    def __init__(self, code, text="fault", details=b""):
        super().__init__(text)
        self.code, self.text, self.details = code, text, details


def retry_info(seconds):
    """Details of a status with RetryInfo."""
    status = message("google.rpc.Status")(code=8, message="full")
    detail = status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo")
    info = message("google.rpc.RetryInfo")()
    info.retry_delay.nanos = int(seconds * 1e9)
    detail.value = info.SerializeToString()
    return status.SerializeToString()


class FakeServer:
    def __init__(self, address="127.0.0.1:0", credentials=None):
        self.blobs, self.uploads, self.jobs, self.events, self.plans, self.requests = {}, {}, {}, {}, {}, {}
        self.received = self.sent = 0
        self.calls = []
        self.tokens = set()
        self.fault = lambda call, done: None  # raises Fault
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        handlers = {}
        for service, name in UNARY:
            method = Method(service, name)
            handlers.setdefault(service, {})[name] = grpc.unary_unary_rpc_method_handler(
                self._guard(name, getattr(self, name)), method.request.FromString, method.response.SerializeToString)
        for service, name, kind in [(BYTE_STREAM, "Write", grpc.stream_unary_rpc_method_handler),
                                    (BYTE_STREAM, "Read", grpc.unary_stream_rpc_method_handler),
                                    (JOBS, "WatchJob", grpc.unary_stream_rpc_method_handler)]:
            method = Method(service, name)
            guard = self._guard if name == "Write" else self._guard_stream
            handlers.setdefault(service, {})[name] = kind(
                guard(name, getattr(self, name)), method.request.FromString, method.response.SerializeToString)
        for service, methods in handlers.items():
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        port = self._server.add_secure_port(address, credentials) if credentials else self._server.add_insecure_port(address)
        self.address = address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"
        self._server.start()

    def stop(self):
        self._server.stop(0).wait()

    def _begin(self, name, context):
        self.calls.append(name)
        self.tokens.update(value for key, value in context.invocation_metadata() if key == "authorization")

    @staticmethod
    def _abort(context, fault):
        if fault.details:
            context.set_trailing_metadata((("grpc-status-details-bin", fault.details),))
        context.abort(getattr(grpc.StatusCode, fault.code), fault.text)

    def _guard(self, name, function):
        def handler(request, context):
            self._begin(name, context)
            try:
                self.fault(name, 0)
                return function(request)
            except Fault as fault:
                self._abort(context, fault)
        return handler

    def _guard_stream(self, name, function):
        def handler(request, context):
            self._begin(name, context)
            try:
                self.fault(name, 0)
                yield from function(request)
            except Fault as fault:
                self._abort(context, fault)
        return handler

    # RPCs

    def FindMissingBlobs(self, request):
        missing = [digest for digest in request.digests if digest.sha256 not in self.blobs]
        return Method(MODELS, "FindMissingBlobs").response(missing=missing)

    def CreateModel(self, request):
        for file in request.files:
            if file.digest.sha256 not in self.blobs:
                raise Fault("FAILED_PRECONDITION", "missing blob")
        text = "".join(f"{file.path} {file.digest.sha256}\n" for file in request.files)
        return message("mendel.v1.Model")(name="models/" + hashlib.sha256(text.encode()).hexdigest(), files=request.files,
                                          main_file=request.main_file)

    def SubmitJob(self, request):
        name = self.requests.setdefault(request.request_id, f"jobs/{len(self.requests)}")
        job = self.jobs.setdefault(name, message("mendel.v1.Job")(name=name, spec=request.spec, state=1))
        self.on_submit(job)
        self.fault("SubmitJob answer", 0)
        return message("google.longrunning.Operation")(name=name)

    def on_submit(self, job):
        """Tests replace it."""

    def _find(self, known, name):
        if name not in known:
            raise Fault("NOT_FOUND", f"there is no {name}")
        return known[name]

    def GetJob(self, request):
        return self._find(self.jobs, request.name)

    def CancelJob(self, request):
        self._find(self.jobs, request.name).state = 6
        return self.jobs[request.name]

    def ListJobs(self, request):
        start = int(request.page_token or 0)
        jobs = [job for job in self.jobs.values() if not request.states or job.state in request.states]
        end = start + request.page_size
        return Method(JOBS, "ListJobs").response(jobs=jobs[start:end], next_page_token=str(end) if end < len(jobs) else "")

    def GetPlan(self, request):
        return self._find(self.plans, request.name)

    def ListPlans(self, request):
        return Method(PLANS, "ListPlans").response(plans=list(self.plans.values()))

    def QueryWriteStatus(self, request):
        sha256 = request.resource_name.split("/")[3]
        if sha256 in self.blobs:
            return Method(BYTE_STREAM, "QueryWriteStatus").response(committed_size=len(self.blobs[sha256]), complete=True)
        upload = self._find(self.uploads, request.resource_name)
        return Method(BYTE_STREAM, "QueryWriteStatus").response(committed_size=len(upload))

    def Write(self, requests):
        name, done = "", 0
        for request in requests:
            name = request.resource_name or name
            upload = self.uploads.setdefault(name, bytearray())
            if request.write_offset != len(upload):
                raise Fault("OUT_OF_RANGE", "another offset")
            upload += request.data
            done += len(request.data)
            self.received += len(request.data)
            if request.finish_write:
                sha256 = name.split("/")[3]
                if hashlib.sha256(upload).hexdigest() != sha256:
                    raise Fault("DATA_LOSS", "hash")
                self.blobs[sha256] = bytes(self.uploads.pop(name))
                return Method(BYTE_STREAM, "Write").response(committed_size=len(self.blobs[sha256]))
            self.fault("Write", done)
        return Method(BYTE_STREAM, "Write").response(committed_size=len(self.uploads.get(name, b"")))

    def Read(self, request):
        data = self.blobs[request.resource_name.split("/")[1]]
        for offset in range(request.read_offset, len(data), 1 << 16):
            piece = data[offset:offset + (1 << 16)]
            self.sent += len(piece)
            yield Method(BYTE_STREAM, "Read").response(data=piece)
            self.fault("Read", offset + len(piece) - request.read_offset)

    def WatchJob(self, request):
        for count, event in enumerate(e for e in self.events.get(request.name, []) if e.sequence > request.after_sequence):
            yield event
            self.fault("WatchJob", count + 1)

    def Check(self, _):
        return Method(HEALTH, "Check").response(status=1)

    # Helpers of tests

    def add_plan(self, data, **fields):
        sha256 = hashlib.sha256(data).hexdigest()
        self.blobs[sha256] = data
        plan = message("mendel.v1.Plan")(name=f"plans/{sha256}", blob=f"blobs/{sha256}/{len(data)}", size_bytes=len(data), **fields)
        self.plans[plan.name] = plan
        return plan
