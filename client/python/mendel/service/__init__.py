"""Client of Mendel's service, and plans run in process.

    from mendel_client import Client, load_plan

    with Client("localhost:8470") as client:
        model = client.upload("model.onnx")
        job = client.wait(client.submit(model, shapes="input:1x3x224x224", budget=60))
        client.download(job.plan, "model.plan")

    plan = load_plan("model.plan")
    outputs = plan.run({"input": array})
"""
from mendel_client._errors import JobFailed, MendelError
from mendel_client._types import Box, Event, Job, Model, OutputVerdict, Plan, Progress, Verdict
from mendel_client.client import Client
from mendel_client.plan import LoadedPlan, PlanError, ValueInfo, load_plan

__version__ = "0.1.0"
__all__ = [
    "Box", "Client", "Event", "Job", "JobFailed", "LoadedPlan", "MendelError", "Model", "OutputVerdict", "Plan", "PlanError",
    "Progress", "ValueInfo", "Verdict", "load_plan",
]
