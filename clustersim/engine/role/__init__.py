"""Programs laid flat over their rounds."""
