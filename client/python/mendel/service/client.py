"""The service's client."""
from __future__ import annotations

import os
import pathlib
import uuid
from typing import Any, Callable, Iterable, Iterator, List, Optional, Union

from mendel.service import _transfer
from mendel.service._channel import Channel, ProgressFunction, default_address
from mendel.service._errors import JobFailed, MendelError
from mendel.service._messages import HEALTH, JOBS, MODELS, PLANS, Method, enum_number, message
from mendel.service._model_files import model_files
from mendel.service._retry import Retrier
from mendel.service._types import Event, Job, Model, Plan, Verdict

PathLike = Union[str, "os.PathLike[str]"]
_FIND = Method(MODELS, "FindMissingBlobs")
_CREATE = Method(MODELS, "CreateModel")
_SUBMIT = Method(JOBS, "SubmitJob")
_WATCH = Method(JOBS, "WatchJob")
_GET_JOB = Method(JOBS, "GetJob")
_LIST_JOBS = Method(JOBS, "ListJobs")
_CANCEL = Method(JOBS, "CancelJob")
_GET_PLAN = Method(PLANS, "GetPlan")
_LIST_PLANS = Method(PLANS, "ListPlans")
_HEALTH = Method(HEALTH, "Check")
_GRPC_CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
    "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()


def _duration(seconds: float) -> Any:
    whole = int(seconds)
    return message("google.protobuf.Duration")(seconds=whole, nanos=round((seconds - whole) * 1e6) * 1000)


class Client:
    """A connection to a server. Thread-safe; a context manager. Calls block and raise MendelError.

    `address`: "host:port" or "unix:/path" (default: MENDEL_SERVER, else localhost:8470). TLS arguments are file names and are called
    as in Triton's client: `ssl`, `root_certificates`, `private_key`, `certificate_chain`. The bearer token is `token`, the first line
    of `token_file`, or MENDEL_TOKEN. `retry_time`: seconds without progress after which an unreachable or full server is given up.
    `project` (or MENDEL_PROJECT): of uploads and lists; empty: the project "default".
    """

    def __init__(self, address: Optional[str] = None, *, ssl: bool = False, root_certificates: Optional[str] = None,
                 private_key: Optional[str] = None, certificate_chain: Optional[str] = None, token: Optional[str] = None,
                 token_file: Optional[str] = None, call_timeout: float = 30.0, retry_time: float = 60.0,
                 project: Optional[str] = None):
        self._retry_time = retry_time
        project = project or os.environ.get("MENDEL_PROJECT", "")
        self._parent = f"projects/{project}" if project else ""
        self._channel = Channel(
            address or default_address(), ssl=ssl, root_certificates=root_certificates, private_key=private_key,
            certificate_chain=certificate_chain, token=token or os.environ.get("MENDEL_TOKEN"), token_file=token_file,
            call_timeout=call_timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    # Models

    def upload(self, path: PathLike, progress: Optional[ProgressFunction] = None) -> str:
        """Sends what the server lacks of an ONNX file and its external data; returns the model's name. Going on after a crash is
        automatic. `progress` is reported bytes in place and bytes of all files."""
        return self.upload_model(path, progress).name

    def upload_model(self, path: PathLike, progress: Optional[ProgressFunction] = None) -> Model:
        files = model_files(path)
        request = _CREATE.request(main_file=pathlib.Path(path).name, parent=self._parent)
        local = {}
        for name, file in files.items():
            digest, size = _transfer.hash_file(file)
            entry = request.files.add(path=name)
            entry.digest.sha256, entry.digest.size_bytes = digest.hexdigest(), size
            local[entry.digest.sha256] = file
        for attempt in (1, 2):  # an old blob may go between "I have it" and the manifest
            self._send_missing(request, local, progress or (lambda done, total: None))
            try:
                return Model.of(self._query(_CREATE, request))
            except MendelError as error:
                if error.code != "FAILED_PRECONDITION" or attempt == 2:
                    raise
        raise AssertionError("unreachable")

    # Jobs

    def submit(self, model: str, *, shapes: str = "", device: str = "", isa: str = "", threads: int = 0, numerics: str = "",
               budget: float = 0, candidates: int = 0, memory_bytes: int = 0, wall_time: float = 0, seed: int = 1,
               disabled_rules: Iterable[str] = (), target_bound_log2: int = 0, priority: int = 0, request_id: str = "",
               weights: str = "", max_weight_growth_bytes: int = 0) -> str:
        """Queues an optimization and returns the job's name. `shapes`: "input:1x3x224x224"; `budget` and `wall_time` in seconds;
        `numerics`: "strict", "default" or "bf16";
        `weights`: "symbolic" or "exact" (the plan may use the stored numbers, and then holds for them only).
        Zero and empty: the server's defaults (jobs.proto). The same `request_id` gives the same job."""
        spec = message("mendel.v1.JobSpec")()
        spec.optimize.model, spec.optimize.shapes, spec.optimize.device, spec.optimize.isa = model, shapes, device, isa
        spec.optimize.threads, spec.optimize.numerics, spec.optimize.seed = threads, numerics, seed
        spec.optimize.disabled_rules.extend(disabled_rules)
        spec.optimize.target_bound_log2, spec.optimize.weights = target_bound_log2, weights
        spec.optimize.max_weight_growth_bytes = max_weight_growth_bytes
        spec.optimize.budget.candidates, spec.optimize.budget.memory_bytes = candidates, memory_bytes
        if budget:
            spec.optimize.budget.time.MergeFrom(_duration(budget))
        if wall_time:
            spec.optimize.budget.wall_time.MergeFrom(_duration(wall_time))
        return self._submit(spec, priority, request_id)

    def submit_rebind(self, plan: str, model: str, *, priority: int = 0, request_id: str = "") -> str:
        """Queues new weights for a plan, without a search; returns the job's name."""
        spec = message("mendel.v1.JobSpec")()
        # The API's field keeps its old name for version 0.1: `rebind_plan` replaces it.
        spec.refit_plan.plan, spec.refit_plan.model = plan, model
        return self._submit(spec, priority, request_id)

    # submit_refit is the old name of submit_rebind, kept for version 0.1.
    submit_refit = submit_rebind

    def watch(self, job: str, after_sequence: int = 0) -> Iterator[Event]:
        """The job's events, each once and in order, until it has ended, whatever happens to connections."""
        retrier = self._retrier()
        while True:
            try:
                for event in self._channel.read(_WATCH, _WATCH.request(name=job, after_sequence=after_sequence)):
                    if event.sequence > after_sequence:
                        after_sequence = event.sequence
                        retrier.progress()
                        yield Event.of(event)
                if self.job(job).done:
                    return
                raise MendelError("UNAVAILABLE", "the server ended the watch")
            except MendelError as error:
                retrier.again(error)

    def wait(self, job: str, on_event: Optional[Callable[[Event], None]] = None) -> Job:
        """Waits for the job's end. Raises JobFailed unless it SUCCEEDED."""
        for event in self.watch(job):
            if on_event is not None:
                on_event(event)
        ended = self.job(job)
        if ended.state == "CANCELLED":
            raise JobFailed(job, "CANCELLED", "it was cancelled before it had a result")
        if ended.state == "FAILED":
            code = _GRPC_CODES[ended.error_code] if 0 < ended.error_code < len(_GRPC_CODES) else "UNKNOWN"
            raise JobFailed(job, code, ended.error or "no reason given")
        return ended

    def job(self, name: str) -> Job:
        return Job.of(self._query(_GET_JOB, _GET_JOB.request(name=name)))

    def jobs(self, states: Iterable[str] = (), client: str = "", limit: int = 50, filter: str = "") -> List[Job]:
        """The newest jobs; `states` as in Job.state; `limit` 0: all; `filter` as docs/service.md describes."""
        numbers = [enum_number("mendel.v1.JobState", f"JOB_STATE_{state}") for state in states]
        return [Job.of(job) for job in self._pages(_LIST_JOBS, _LIST_JOBS.request(states=numbers, client=client, parent=self._parent,
                                                                                   filter=filter), "jobs", limit)]

    def cancel(self, job: str) -> Job:
        """Requests that a job ends; a search keeps its best plan so far."""
        return Job.of(self._query(_CANCEL, _CANCEL.request(name=job)))

    # Plans

    def plan(self, name: str) -> Plan:
        return Plan.of(self._query(_GET_PLAN, _GET_PLAN.request(name=name)))

    def plans(self, model: str = "", limit: int = 50, filter: str = "") -> List[Plan]:
        return [Plan.of(plan) for plan in self._pages(_LIST_PLANS, _LIST_PLANS.request(model=model, filter=filter,
                                                                                       parent="" if model else self._parent), "plans", limit)]

    def download(self, plan: str, path: PathLike, progress: Optional[ProgressFunction] = None) -> Plan:
        """Writes the plan file: resumably, hash checked, and visible under `path` only when it is whole."""
        found = self.plan(plan)
        _transfer.download(self._channel, self._retrier(), found.blob, pathlib.Path(path), progress or (lambda done, total: None))
        return found

    # The verifier

    def verify(self, a: str, b: str, *, shapes: str = "", weights: str = "", tests: int = 0, seed: int = 0, time_limit: float = 0,
               memory_limit: int = 0, regions: bool = True, request_id: str = "") -> Verdict:
        """Compares two uploaded models and waits for the verdict. `weights`: "exact" or "symbolic"; `memory_limit`: bytes."""
        spec = message("mendel.v1.JobSpec")()
        pair = spec.compare_pair
        pair.model_a, pair.model_b, pair.shapes, pair.weights = a, b, shapes, weights
        pair.tests, pair.seed, pair.regions = tests, seed, regions
        pair.memory_limit_bytes = memory_limit
        if time_limit:
            pair.time_limit.MergeFrom(_duration(time_limit))
        return self._verdict(spec, request_id)

    def verify_plan(self, plan: str, model: str, *, request_id: str = "") -> Verdict:
        """Replays a stored plan's certificate against a model and waits for the verdict."""
        spec = message("mendel.v1.JobSpec")()
        spec.verify_plan.plan, spec.verify_plan.model = plan, model
        return self._verdict(spec, request_id)

    def health(self, service: str = "") -> bool:
        """Whether the server (or one service of it) can be used. Tried once."""
        try:
            return bool(self._channel.call(_HEALTH, _HEALTH.request(service=service)).status == 1)
        except MendelError:
            return False

    # Inside

    def _retrier(self) -> Retrier:
        return Retrier(self._retry_time)

    def _query(self, method: Method, request: Any) -> Any:
        retrier = self._retrier()
        while True:
            try:
                return self._channel.call(method, request)
            except MendelError as error:
                retrier.again(error)

    def _pages(self, method: Method, request: Any, field: str, limit: int) -> List[Any]:
        items: List[Any] = []
        while True:
            request.page_size = min(1000, limit - len(items)) if limit else 1000
            page = self._query(method, request)
            items.extend(getattr(page, field))
            request.page_token = page.next_page_token
            if not request.page_token or (limit and len(items) >= limit):
                return items

    def _submit(self, spec: Any, priority: int, request_id: str) -> str:
        # The id is made before the first attempt: repeated attempts make one job.
        request = _SUBMIT.request(spec=spec, priority=priority, request_id=request_id or str(uuid.uuid4()))
        return str(self._query(_SUBMIT, request).name)

    def _verdict(self, spec: Any, request_id: str) -> Verdict:
        ended = self.wait(self._submit(spec, 0, request_id))
        if ended.verdict is None:
            raise MendelError("DATA_LOSS", f"{ended.name} ended without a verdict")
        return ended.verdict

    def _send_missing(self, manifest: Any, local: Any, progress: ProgressFunction) -> None:
        request = _FIND.request(digests=[file.digest for file in manifest.files], parent=self._parent)
        missing = self._query(_FIND, request).missing
        total = sum(file.digest.size_bytes for file in manifest.files)
        before = total - sum(digest.size_bytes for digest in missing)
        for digest in missing:
            if digest.sha256 not in local:
                raise MendelError("DATA_LOSS", "the server requests a blob that was not offered")
            base = before
            _transfer.upload(self._channel, self._retrier(), local[digest.sha256], digest.sha256, digest.size_bytes,
                             lambda done, _, base=base: progress(base + done, total),  # type: ignore[misc]
                             prefix=f"{self._parent}/" if self._parent else "")
            before += digest.size_bytes
