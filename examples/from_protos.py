"""Optimizes a model on a server with nothing but the .proto files. usage: from_protos.py MODEL.onnx PLAN

The model travels in one message, which the server limits (--max-chunk-bytes); a larger one takes several requests.

    mkdir api && protoc -Iproto --python_out=api --grpc_out=api --plugin=protoc-gen-grpc=$(which grpc_python_plugin) $(cd proto && find google mendel/v1 -name '*.proto')
    PYTHONPATH=api python3 examples/from_protos.py examples/camera.onnx camera.plan
"""
import hashlib, pathlib, sys, uuid, grpc
from google.bytestream import bytestream_pb2 as bytes_pb2, bytestream_pb2_grpc as bytes_grpc
from mendel.v1 import jobs_pb2, jobs_pb2_grpc, models_pb2, models_pb2_grpc, plans_pb2, plans_pb2_grpc

channel, model = grpc.insecure_channel("localhost:8470"), pathlib.Path(sys.argv[1]).read_bytes()
sha256 = hashlib.sha256(model).hexdigest()
upload = bytes_pb2.WriteRequest(resource_name=f"uploads/{uuid.uuid4()}/blobs/{sha256}/{len(model)}", data=model, finish_write=True)
bytes_grpc.ByteStreamStub(channel).Write(iter([upload]))
file = {"path": "model.onnx", "digest": {"sha256": sha256, "size_bytes": len(model)}}
made = models_pb2_grpc.ModelsStub(channel).CreateModel(models_pb2.CreateModelRequest(files=[file], main_file="model.onnx"))
jobs = jobs_pb2_grpc.JobsStub(channel)
job = jobs.SubmitJob(jobs_pb2.SubmitJobRequest(spec={"optimize": {"model": made.name, "budget": {"time": {"seconds": 5}}}}))
for event in jobs.WatchJob(jobs_pb2.WatchJobRequest(name=job.name)): print(event.progress.phase)
plan = plans_pb2_grpc.PlansStub(channel).GetPlan(plans_pb2.GetPlanRequest(name=jobs.GetJob(jobs_pb2.GetJobRequest(name=job.name)).plan))
parts = bytes_grpc.ByteStreamStub(channel).Read(bytes_pb2.ReadRequest(resource_name=plan.blob))
pathlib.Path(sys.argv[2]).write_bytes(b"".join(part.data for part in parts))
