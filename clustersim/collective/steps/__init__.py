"""Collectives step by step: which member sends which chunks to whom, in which order, and what each transfer waits for.

One algorithm a file, each the exact schedule behind the flows of its namesake in ``clustersim.collective``.
"""
