"""Lets the tests import the files beside them, as running ``layer_time.py`` does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
