"""torch.compile(model, backend="mendel") on models of torchvision and transformers with random weights, beside eager and inductor.

usage: torch_models.py [NAME...]; fails where numbers differ or a model stays with PyTorch. Prints one line a model."""
import statistics
import sys
import time
import warnings

import torch
from torch._dynamo.utils import counters


def vision(name, size=224):
    def make():
        import torchvision
        model = getattr(torchvision.models, name)(weights=None)
        for weight in model.parameters():
            if weight.dim() > 1 and not weight.any():  # a head that begins with zeros would hide every error
                torch.nn.init.normal_(weight, std=0.02)
        return model, [torch.randn(1, 3, size, size)], [torch.randn(2, 3, size, size)]
    return make


def encoder(kind, **sizes):
    def make():
        import transformers
        config = getattr(transformers, kind + "Config")(**sizes)
        model = getattr(transformers, kind + "Model")(config)
        ids = lambda length: [torch.randint(0, config.vocab_size, (1, length))]
        return model, ids(64), ids(96)
    return make


MODELS = {
    "resnet18": vision("resnet18"),
    "mobilenet_v3_small": vision("mobilenet_v3_small"),
    "vit_b_16": vision("vit_b_16"),
    "bert": encoder("Bert", hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024),
    "distilbert": encoder("DistilBert", dim=256, n_layers=4, n_heads=4, hidden_dim=1024),
    "electra": encoder("Electra", hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024),
}


def first_tensor(result):
    return result if isinstance(result, torch.Tensor) else result[0]


def milliseconds(functions, rounds=20):
    """Medians, measured in turn."""
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, taken in zip(functions, times):
            begin = time.perf_counter()
            function()
            taken.append(1e3 * (time.perf_counter() - begin))
    return [statistics.median(taken) for taken in times]


def inductor(model, arguments):
    """None where inductor has no compiler here."""
    try:
        compiled = torch.compile(model)
        compiled(*arguments)
        return compiled
    except Exception as error:
        print(f"  inductor: {type(error).__name__}: {str(error).splitlines()[0][:120]}")
        return None


def trial(name, make):
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    model, arguments, others = make()
    model.eval()
    with torch.no_grad(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        compiled = torch.compile(model, backend="mendel")
        begin = time.perf_counter()
        compiled(*arguments)
        first = time.perf_counter() - begin
        errors = []
        for inputs in (arguments, others, arguments):
            wanted = first_tensor(model(*inputs))
            compiled(*inputs)
            errors.append(float((wanted - first_tensor(compiled(*inputs))).abs().max() / wanted.abs().max()))
        graphs = counters["stats"]["unique_graphs"]
        fallbacks = [str(w.message) for w in seen if "mendel" in str(w.message)]
        torch_compiled = inductor(model, arguments)
        functions = [lambda: model(*arguments), lambda: compiled(*arguments)]
        if torch_compiled is not None:
            functions.append(lambda: torch_compiled(*arguments))
        times = milliseconds(functions)
    text = "  ".join(f"{label} {ms:.2f} ms" for label, ms in zip(("eager", "mendel", "inductor"), times))
    print(f"{name}: {text}  first call {first:.1f} s  {graphs} graphs for 2 shapes  error {max(errors):.1e}", *fallbacks, sep="\n  ", flush=True)
    return not fallbacks and max(errors) < 1e-3


def main():
    if "mendel" not in torch._dynamo.list_backends():
        print("FAIL: PyTorch does not list the backend: ", torch._dynamo.list_backends())
        return 1
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    names = sys.argv[1:] or list(MODELS)
    failed = [name for name in names if not trial(name, MODELS[name])]
    for name in failed:
        print(f"FAIL: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
