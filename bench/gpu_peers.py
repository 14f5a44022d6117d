#!/usr/bin/env python3
"""One peer of bench/gpu as a process: prepares a model, writes its outputs, then runs it for as many seconds as each line says.

usage: gpu_peers.py PEER DEVICE NUMERICS THREADS MODEL.onnx UNPACKED INPUTS.npz OUTPUTS.npz   (PEER: eager, compile, onnxruntime)
       gpu_peers.py versions DEVICE                                                           (one JSON object: peer -> version, or why not)

A run on a GPU has its inputs there and leaves its outputs there, as `mendel bench` measures plans: PyTorch's time is that between two
events on its stream, ONNX Runtime's the wall clock's around a bound run. Under the numerics f16 and bf16, PyTorch runs under autocast
to that format; ONNX Runtime has no such switch for a file in f32 and refuses. UNPACKED: what `model_parts unpack` wrote.
"""
import importlib
import json
import sys

from peer_workers import serve


SIXTEEN_BITS = {"f16": "float16", "bf16": "bfloat16"}  # numerics class -> PyTorch's name


def open_torch(compiled, device, numerics, threads, unpacked, inputs):
    """A run, and the outputs of the last one as arrays."""
    import torch
    import onnx_torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = numerics == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(threads)
    module, reported = onnx_torch.load(unpacked)
    module = module.to(device)
    call = torch.compile(module, mode="max-autotune") if compiled else module
    resident = [torch.from_numpy(inputs[one["name"]]).to(device) for one in reported["inputs"]]
    rounded = numerics in SIXTEEN_BITS
    precision = getattr(torch, SIXTEEN_BITS[numerics]) if rounded else None
    last = []

    def run_here():
        with torch.inference_mode(), torch.autocast(device, dtype=precision, enabled=rounded):
            last[:] = call(*resident)

    def run_on_gpu():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run_here()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def outputs():
        return [(value.float() if rounded and value.is_floating_point() else value).cpu().numpy() for value in last]

    return run_on_gpu if device == "cuda" else run_here, outputs


def open_onnxruntime(device, numerics, threads, model, inputs):
    if numerics in SIXTEEN_BITS:
        raise RuntimeError(f"runs this file in f32 alone, not in {numerics}")
    import onnxruntime
    tf32 = numerics == "tf32"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    provider = ("CUDAExecutionProvider", {"use_tf32": int(tf32)}) if device == "cuda" else "CPUExecutionProvider"
    session = onnxruntime.InferenceSession(model, options, providers=[provider])
    if device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        raise RuntimeError("ONNX Runtime could not open CUDA and would run on the CPU")
    if device == "cpu":
        last = []

        def run():
            last[:] = session.run(None, inputs)

        return run, lambda: last
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")

    def run_bound():
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    return run_bound, binding.copy_outputs_to_cpu


def versions(device):
    """Per peer (version, None) or (None, why not)."""
    found = {}
    try:
        torch = importlib.import_module("torch")
        missing = "PyTorch finds no GPU" if device == "cuda" and not torch.cuda.is_available() else None
        found["eager"] = found["compile"] = (None if missing else f"{torch.__version__}, cuDNN {torch.backends.cudnn.version()}", missing)
    except ImportError as error:
        found["eager"] = found["compile"] = (None, str(error))
    try:
        onnxruntime = importlib.import_module("onnxruntime")
        wanted = "CUDAExecutionProvider" if device == "cuda" else "CPUExecutionProvider"
        missing = None if wanted in onnxruntime.get_available_providers() else f"onnxruntime {onnxruntime.__version__} has no {wanted}"
        found["onnxruntime"] = (None if missing else onnxruntime.__version__, missing)
    except ImportError as error:
        found["onnxruntime"] = (None, str(error))
    return found


def main():
    if sys.argv[1] == "versions":
        print(json.dumps(versions(sys.argv[2])))
        return 0
    import numpy
    peer, device, numerics, threads, model, unpacked, inputs, outputs = sys.argv[1:]
    given = dict(numpy.load(inputs))
    if peer == "onnxruntime":
        run, results = open_onnxruntime(device, numerics, int(threads), model, given)
    else:
        run, results = open_torch(peer == "compile", device, numerics, int(threads), unpacked, given)
    run()
    numpy.savez(outputs, *results())
    serve(run, own_clock=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
