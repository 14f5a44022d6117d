"""Kinds of pairs and their variants. A kind is a function build(net, **parameters) that makes either form, as net.expert requires."""
import dataclasses

from chance_kinds.net import CONTEXTS, Net

KINDS = {}


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    about: str
    build: callable
    partial: bool  # whether a partially equivalent mutant with a correction may gain here
    variants: tuple


@dataclasses.dataclass(frozen=True)
class Pair:
    name: str
    kind: Kind
    context: str
    parameters: dict

    def bytes(self, expert, seed):
        """The ONNX file of a form."""
        net = Net(self.name, expert, self.context, seed)
        for net.part in range(2 if self.context == "double" else 1):
            self.kind.build(net, **self.parameters)
        return net.bytes()


def kind(*variants, partial=False):
    """Registers a kind. A variant is a dictionary of parameters, of which `context` is one of CONTEXTS."""
    def register(build):
        name = build.__name__
        if name in KINDS:
            raise ValueError(f"kind {name} is registered twice")
        KINDS[name] = Kind(name, " ".join(build.__doc__.split()), build, partial, variants)
        return build
    return register


def word(key, value):
    if isinstance(value, bool):
        return key if value else f"no_{key}"
    if isinstance(value, (tuple, list)):
        value = "_".join(map(str, value))
    return value if isinstance(value, str) else f"{key}{value}"


def pairs():
    """All pairs, sorted by name."""
    found = {}
    for one in KINDS.values():
        for variant in one.variants:
            parameters = dict(variant)
            context = parameters.pop("context", "alone")
            words = [one.name, *(word(*item) for item in parameters.items()), *([context] if context != "alone" else [])]
            name = "-".join(words)
            if name in found or context not in CONTEXTS:
                raise ValueError(f"variant {name} is given twice or has an unknown context")
            found[name] = Pair(name, one, context, parameters)
    return [found[name] for name in sorted(found)]
