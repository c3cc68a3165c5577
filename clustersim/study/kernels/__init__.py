"""Measured kernels: placed on devices, calibrated from, and told beside predictions."""
