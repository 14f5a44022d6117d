"""Client of Mendel's service. Needs grpcio and protobuf: `pip install mendel[service]`.

    from mendel.service import Client

    with Client("localhost:8470") as client:
        model = client.upload("model.onnx")
        job = client.wait(client.submit(model, shapes="input:1x3x224x224", budget=60))
        client.download(job.plan, "model.plan")
"""
from mendel.service._errors import JobFailed, MendelError
from mendel.service._types import Box, Event, Job, Model, OutputVerdict, Plan, Progress, Verdict
from mendel.service.client import Client
from mendel._runtime import LoadedPlan, PlanError, ValueInfo, load_plan

__version__ = "0.1.0"
__all__ = [
    "Box", "Client", "Event", "Job", "JobFailed", "LoadedPlan", "MendelError", "Model", "OutputVerdict", "Plan", "PlanError",
    "Progress", "ValueInfo", "Verdict", "load_plan",
]
