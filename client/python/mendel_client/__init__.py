"""Old name of `mendel.service`, kept for one version."""
import importlib
import sys
import warnings

warnings.warn("mendel_client is now mendel.service; this name goes with the next version", DeprecationWarning, stacklevel=2)

from mendel import LoadedPlan, PlanError, ValueInfo, load_plan  # noqa: E402
from mendel.service import *  # noqa: E402,F401,F403
from mendel.service import __version__  # noqa: E402,F401

for _name in ("_channel", "_errors", "_messages", "_model_files", "_retry", "_transfer", "_types", "client"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"mendel.service.{_name}")
sys.modules[f"{__name__}.plan"] = importlib.import_module("mendel._runtime")
