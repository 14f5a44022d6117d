"""The peers of the benches: ONNX Runtime and OpenVINO, from PyPI in a virtual environment of their own."""
import subprocess
import sys

PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def install(venv, others):
    """`others`: onnx, too, for other batches. The virtual environment's Python, and for every peer its version, or None with the reason."""
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    versions, reasons = {}, {}
    for peer in PEERS:
        probe = [python, "-c", f"import importlib.metadata as m, {peer}; print(m.version('{peer}'))"]
        found = subprocess.run(probe, capture_output=True, text=True)
        if found.returncode != 0:
            pip = subprocess.run([python, "-m", "pip", "install", "-q", peer], capture_output=True, text=True)
            found = subprocess.run(probe, capture_output=True, text=True)
            if found.returncode != 0:
                reasons[peer] = ((pip.stderr if pip.returncode else found.stderr).strip().splitlines() or ["unknown"])[-1][:160]
                continue
        versions[peer] = found.stdout.strip()
    if others and subprocess.run([python, "-c", "import onnx"], capture_output=True).returncode != 0:
        subprocess.run([python, "-m", "pip", "install", "-q", "onnx"], check=True)
    return python, versions, reasons
