"""PostgreSQL's parameters of a connection, such as time-outs: sent when it is opened, or in each transaction."""

from collections.abc import Mapping
from typing import Any


def with_parameters(database: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
    """Django's settings of a database, with parameters of PostgreSQL beside or in place of those that they have.

    A pooler (`POOLER`) refuses them where one connects to it, and gives a transaction any of its connections. Then
    `SET_LOCAL` is the statement that each transaction begins with; otherwise it is empty.

    Args:
        database: the settings.
        parameters: values by name.
    """
    merged = {**database.get("PARAMETERS", {}), **parameters}
    options = {name: value for name, value in database["OPTIONS"].items() if name != "options"}
    set_local = ""
    if database.get("POOLER"):
        set_local = "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in merged.items())
    else:
        options["options"] = " ".join(f"-c {name}={value}" for name, value in merged.items())
    return {**database, "PARAMETERS": merged, "OPTIONS": options, "SET_LOCAL": set_local}
