"""Settings with their units, legal values and defaults."""

from __future__ import annotations

from clustersim.cli.output import OK, print_json, wrapped

__all__ = ["show_keys"]


def show_keys(part: str | None, *, as_json: bool) -> int:
    """All settings, or the one of a name, or those of a table, as ``plan.offload``."""
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.keys import KEYS

    asked = [name for name in KEYS if part is None or name == part or name.startswith(f"{part}.")]
    if not asked:
        tables = {name.rpartition(".")[0] for name in KEYS} - {""}
        rule = "is no key, and no table of keys; all of them: clustersim show keys"
        raise BadInput([Fault(key="keys", value=part, rule=rule, nearest=nearest_name(str(part), [*KEYS, *tables]))])
    rows = []
    for name in asked:
        key = KEYS[name]
        default = key.otherwise if key.default is None else key.default
        words = f"[{', '.join(default)}]" if isinstance(default, tuple) else default
        rows.append({"key": name, "unit": key.unit, "default": words, "legal": key.value.legal, "meaning": key.meaning})
    if as_json:
        print_json({row.pop("key"): row for row in rows})
        return OK
    for row in rows:
        unit = f" [{row['unit']}]" if row["unit"] else ""
        default = str(row["default"]).lower() if isinstance(row["default"], bool) else row["default"]
        print(wrapped(f"{row['key']}: {row['meaning']}{unit}"))
        print(wrapped(f"{row['legal']}; default: {default}", indent="    "))
    return OK
