"""The Python package against the real server of server_test.sh. usage: python_server_test.py FOLDER (of make_verify_pairs)"""
import pathlib
import sys

from mendel.service import Client, JobFailed, MendelError

folder = pathlib.Path(sys.argv[1])
with Client() as client:
    assert client.health() and not client.health("no.such.Service")
    a, b, c = (client.upload(folder / f"{name}.onnx") for name in ("net", "rewritten", "one_weight"))
    events = []
    job = client.wait(client.submit(a, budget=1, threads=1), events.append)
    assert [event.sequence for event in events] == sorted({event.sequence for event in events}) and events[-1].state == "SUCCEEDED", events
    plan = client.download(job.plan, folder / "python.plan")
    assert plan.bound_log2 <= -80 and plan.model == a, plan
    assert client.verify_plan(plan.name, a).kind == "equivalent"
    assert job.plan in [known.name for known in client.plans(model=a)]
    assert client.verify(a, b).kind == "equivalent"
    verdict = client.verify(a, c)
    assert verdict.kind == "partial" and not verdict and verdict.outputs[0].boxes and verdict.report["schema"] == "mendel.verify/1", verdict
    for call, code in [
        (lambda: client.job("jobs/none"), ("NOT_FOUND", "INVALID_ARGUMENT")),
        (lambda: client.submit("models/x"), ("NOT_FOUND", "INVALID_ARGUMENT")),
    ]:
        try:
            call()
        except MendelError as error:
            assert error.code in code, error
        else:
            raise AssertionError("no error")
    try:
        client.wait(client.submit(a, shapes="none:1x2", budget=1))
    except JobFailed as error:
        assert error.code == "INVALID_ARGUMENT", error
    except MendelError as error:
        assert error.code == "INVALID_ARGUMENT", error
with Client(project="vision") as vision, Client() as client:
    own = vision.upload(folder / "net.onnx")
    assert own.startswith("projects/vision/models/") and own.split("/")[-1] == a.split("/")[-1], own
    job = vision.wait(vision.submit(own, budget=1, threads=1))
    assert job.name.startswith("projects/vision/jobs/") and job.plan.startswith("projects/vision/plans/"), job
    plan = vision.download(job.plan, folder / "vision.plan")
    assert plan.model == own and vision.verify_plan(plan.name, own).kind == "equivalent", plan
    assert [known.name for known in vision.jobs()] and all(known.name.startswith("projects/vision/") for known in vision.jobs())
    assert all(known.name.startswith("projects/vision/") for known in vision.plans())
    assert [known.name for known in vision.plans(filter="model : net.onnx")] == [job.plan] and not vision.plans(filter="model : other")
    assert not any(known.name.startswith("projects/") for known in client.jobs() + client.plans())
    try:
        client.verify(a, own)
    except MendelError as error:
        assert error.code == "INVALID_ARGUMENT" and "project" in str(error), error
    else:
        raise AssertionError("a job of two projects")
print("python client and server: good")
