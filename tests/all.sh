#!/bin/sh
# Everything that must hold. VENV names the virtual environment; it is made when it is missing.
cd "$(dirname "$0")/.." || exit 1
venv=${VENV:-.venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || exit 1
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]' || exit 1
status=0
"$venv/bin/ruff" check . || status=1
"$venv/bin/mypy" || status=1
"$venv/bin/lint-imports" || status=1
"$venv/bin/python" -m pytest -n auto --dist loadfile || status=1
exit $status
