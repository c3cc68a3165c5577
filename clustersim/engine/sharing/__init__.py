"""Resources that several ops use at once, and the rates that come of it."""
