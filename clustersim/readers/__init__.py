"""Users' files in: one format a module, each with ``detect(path)`` and ``read(path) -> (object, notes)``."""
