#!/usr/bin/env python3
"""One engine of bench/gpu as a process: prepares a model, writes its outputs, then runs it for as many seconds as each line says.

usage: gpu_peers.py ENGINE DEVICE NUMERICS THREADS MODEL.onnx UNPACKED INPUTS.npz OUTPUTS.npz [LIBMENDEL]
       gpu_peers.py versions DEVICE                              (one JSON object: peer -> version, or why not)

ENGINE: mendel (MODEL is then its plan), eager, compile, autotune, xla, onnxruntime. Inputs lie on the device and outputs stay there. An engine is
timed as a user's loop is, by the wall clock (peer_workers.serve_loop). PyTorch runs in the layout, channels first or last, in which eager is
faster on the model. Under the numerics f16 and bf16, PyTorch and XLA run a model of that format (`.half()`), inputs and outputs converted
outside of the time; ONNX Runtime has no such switch for a file in f32 and refuses. UNPACKED: what `model_parts unpack` wrote.
"""
import importlib
import json
import os
import sys
import time

from peer_workers import serve_loop

SIXTEEN_BITS = {"f16": "float16", "bf16": "bfloat16"}  # numerics class -> the frameworks' name


def fastest_layout(module, resident, wait):
    """The module and inputs with the channels first or last, whichever runs faster, and that layout's name."""
    import torch
    best = None
    for name, layout in (("channels first", torch.contiguous_format), ("channels last", torch.channels_last)):
        moved = [x.contiguous(memory_format=layout) if x.dim() == 4 else x for x in resident]
        module.to(memory_format=layout)
        times = []
        for _ in range(12):
            begin = time.perf_counter()
            module(*moved)
            wait()
            times.append(time.perf_counter() - begin)
        taken = sorted(times[2:])[5]
        if best is None or taken < best[0]:
            best = (taken, name, layout, moved)
        if all(x.dim() != 4 for x in resident):
            break
    module.to(memory_format=best[2])
    return best[1], best[3]


def open_torch(engine, device, numerics, threads, unpacked, inputs):
    """(enqueue, wait, outputs as arrays, notes)."""
    import torch
    import onnx_torch
    tf32 = numerics == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    module, reported = onnx_torch.load(unpacked)
    precision = getattr(torch, SIXTEEN_BITS[numerics]) if numerics in SIXTEEN_BITS else None

    def moved(x):
        return x.to(device, precision if precision and x.is_floating_point() else None)

    module = module.to(device=device, dtype=precision)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    layout, resident = fastest_layout(module, [moved(torch.from_numpy(inputs[one["name"]])) for one in reported["inputs"]], wait)
    call = module
    if engine != "eager":
        call = torch.compile(module, mode="max-autotune" if engine == "autotune" else None)
    last = []

    def enqueue():
        last[:] = call(*resident)

    def outputs():
        return [(value.float() if precision and value.is_floating_point() else value).cpu().numpy() for value in last]

    return enqueue, wait, outputs, layout


def open_xla(device, numerics, unpacked, inputs):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the other engines need memory, too
    import jax
    import numpy
    import onnx_jax
    function, reported = onnx_jax.load(unpacked, SIXTEEN_BITS.get(numerics), tf32=numerics == "tf32")
    resident = [jax.device_put(inputs[one["name"]]) for one in reported["inputs"]]
    last = []

    def enqueue():
        last[:] = function(*resident)

    return enqueue, lambda: jax.block_until_ready(last), lambda: [numpy.asarray(value) for value in last], ""


def open_onnxruntime(device, numerics, threads, model, inputs):
    if numerics in SIXTEEN_BITS:
        raise RuntimeError(f"runs this file in f32 alone, not in {numerics}")
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    provider = ("CUDAExecutionProvider", {"use_tf32": int(numerics == "tf32")}) if device == "cuda" else "CPUExecutionProvider"
    session = onnxruntime.InferenceSession(model, options, providers=[provider])
    if device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        raise RuntimeError("ONNX Runtime could not open CUDA and would run on the CPU")
    if device == "cpu":
        last = []

        def run():
            last[:] = session.run(None, inputs)

        return run, lambda: None, lambda: last, ""
    binding, unsynchronized = session.io_binding(), onnxruntime.RunOptions()
    unsynchronized.add_run_config_entry("disable_synchronize_execution_providers", "1")
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    return lambda: session.run_with_iobinding(binding, unsynchronized), binding.synchronize_outputs, binding.copy_outputs_to_cpu, ""


def asked(what, ask):
    """(version, None) or (None, why not)."""
    try:
        return ask()
    except ImportError as error:
        return None, str(error)
    except RuntimeError as error:
        return None, f"{what}: {error}"


def versions(device):
    """Per peer (version, None) or (None, why not)."""
    def torch_here():
        torch = importlib.import_module("torch")
        missing = "PyTorch finds no GPU" if device == "cuda" and not torch.cuda.is_available() else None
        return None if missing else f"{torch.__version__}, cuDNN {torch.backends.cudnn.version()}", missing

    def xla_here():
        jax = importlib.import_module("jax")
        missing = f"JAX's default device is {jax.default_backend()}" if device == "cuda" and jax.default_backend() != "gpu" else None
        return None if missing else f"JAX {jax.__version__}", missing

    def onnxruntime_here():
        onnxruntime = importlib.import_module("onnxruntime")
        wanted = "CUDAExecutionProvider" if device == "cuda" else "CPUExecutionProvider"
        missing = None if wanted in onnxruntime.get_available_providers() else f"onnxruntime {onnxruntime.__version__} has no {wanted}"
        return None if missing else onnxruntime.__version__, missing

    torch = asked("PyTorch", torch_here)
    return {"eager": torch, "compile": torch, "autotune": torch, "xla": asked("XLA", xla_here), "onnxruntime": asked("ONNX Runtime", onnxruntime_here)}


def main():
    if sys.argv[1] == "versions":
        print(json.dumps(versions(sys.argv[2])))
        return 0
    import numpy
    engine, device, numerics, threads, model, unpacked, inputs, outputs = sys.argv[1:9]
    given = dict(numpy.load(inputs))
    if engine == "mendel":
        import mendel_engine
        enqueue, wait, results = mendel_engine.open_plan(sys.argv[9], model, device, int(threads), given)
        note = ""
    elif engine == "onnxruntime":
        enqueue, wait, results, note = open_onnxruntime(device, numerics, int(threads), model, given)
    elif engine == "xla":
        enqueue, wait, results, note = open_xla(device, numerics, unpacked, given)
    else:
        enqueue, wait, results, note = open_torch(engine, device, numerics, int(threads), unpacked, given)
    enqueue()
    wait()
    numpy.savez(outputs, *results())
    serve_loop(enqueue, wait, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
