"""``python -m clustersim.study.reproduce`` in a checkout: simulate all systems and write the table of the page."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from clustersim.study.reproduce import SYSTEMS
from clustersim.study.reproduce.page import write_status

if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("usage: python -m clustersim.study.reproduce, in a checkout")
    print(write_status(SYSTEMS, Path(), processes=len(os.sched_getaffinity(0))))
