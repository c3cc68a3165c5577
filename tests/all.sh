#!/bin/sh
# Everything that must hold. VENV names the virtual environment; it is made when it is missing.
set -e
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
"$venv/bin/ruff" check .
"$venv/bin/mypy"
"$venv/bin/lint-imports"
"$venv/bin/python" -m pytest
