"""Optimizers, as what they keep of each parameter, what an update reads and writes, and what it multiplies."""
