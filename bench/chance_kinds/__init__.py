"""Pairs of small graphs of equal meaning, a naive and an expert form. A module registers the kinds of one idea."""
from chance_kinds import attention, branches, layouts, needed, partial, products, repeats, sums, zeros  # noqa: F401 (registers)
from chance_kinds.registry import KINDS, pairs  # noqa: F401
