"""Measured training steps: each row mapped to a job, predicted in its own metric, and reported by family."""
