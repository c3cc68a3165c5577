"""Attention over a sequence that several ranks share: one way a file."""
