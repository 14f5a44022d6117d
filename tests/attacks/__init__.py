"""Attacks on `mendel verify A B`: pairs of small models whose truth holds by construction (docs/testing.md)."""
