"""Mendel: faster neural networks that compute the same, with a proof.

    import mendel

    plan = mendel.optimize("model.onnx", shapes={"input": (1, 3, 224, 224)}, budget=30)
    outputs = plan.run({"input": array})
    plan.save("model.plan")

    verdict = mendel.verify("a.onnx", "b.onnx")
    verdict.regions["output"].mask()        # true where the outputs can differ

    session = mendel.InferenceSession("model.onnx")   # with ONNX Runtime's interface

Errors are `mendel.Error` with the sentence that the command `mendel` prints. `mendel.service` is the client of a server.
"""
from mendel._library import Error, InvalidArgument, NotFound, Unsupported, version
from mendel._plan import Certificate, Mutant, Plan, optimize
from mendel._runtime import LoadedPlan, PlanError, ValueInfo, load_plan
from mendel._session import (
    ExecutionMode, GraphOptimizationLevel, InferenceSession, IOBinding, ModelMetadata, NodeArg, RunOptions, SessionOptions,
    disable_telemetry_events, enable_telemetry_events, get_available_providers, get_device, set_default_logger_severity,
)
from mendel._verify import OutputVerdict, Region, Regions, Verdict, Witness, verify

__version__ = "0.1.0"
__all__ = [
    "Certificate", "Error", "ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "InvalidArgument", "LoadedPlan",
    "ModelMetadata", "Mutant", "NodeArg", "NotFound", "OutputVerdict", "Plan", "PlanError", "Region", "Regions", "RunOptions",
    "SessionOptions", "Unsupported", "ValueInfo", "Verdict", "Witness", "disable_telemetry_events", "enable_telemetry_events",
    "get_available_providers", "get_device", "load_plan", "optimize", "set_default_logger_severity", "verify", "version",
]
