"""Ops of a lane that follow each other and are one event."""
