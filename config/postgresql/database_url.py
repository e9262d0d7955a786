"""Django's settings of a database: of its address in libpq's own syntax, and with PostgreSQL's parameters.

The address may have several hosts, and parameters of libpq as a query. Those of PostgreSQL, such as time-outs, are sent
when a connection is opened, or in each transaction.
"""

from collections.abc import Mapping
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

SCHEMES = ("postgresql://", "postgres://")
# Select the host that accepts writes: the others are tried when a connection is opened, and left.
_WRITABLE = ("read-write", "primary")
# A host that is silent keeps a new connection from trying the next one for so long.
SECONDS_TO_CONNECT = 5
SECONDS_TO_CONNECT_TO_EACH = 2
# A machine that has fallen off the network is noticed after five seconds instead of a quarter of an hour.
_LIFE_SIGNS = {"keepalives_idle": 5, "keepalives_interval": 1, "keepalives_count": 3, "tcp_user_timeout": 5_000}
_FORM = (
    "Must be postgresql://user:password@host:port/database. Separate several hosts by commas, append parameters of"
    " libpq after a question mark, and percent-encode special characters."
)


def parse_database_url(url: str, *, is_one_of_several: bool = False) -> dict[str, Any]:
    """Django's settings of a database, whose OPTIONS are parameters of libpq.

    Args:
        url: its address.
        is_one_of_several: whether there is another one to turn to while its server is silent.

    Raises:
        ValueError: it is no URL of PostgreSQL, or may lead to a server that takes no writes.
    """
    if not url.startswith(SCHEMES):
        raise ValueError("Must be postgresql://…: PostgreSQL is the only database.")
    try:
        given = conninfo_to_dict(url)
    except ProgrammingError:
        # Not libpq's own words, which may hold the URL and so the password.
        raise ValueError(_FORM) from None
    name, user, password, host, port = (given.pop(key, "") for key in ("dbname", "user", "password", "host", "port"))
    if not name:
        raise ValueError("Must name the database: postgresql://host/database.")
    if "options" in given:
        raise ValueError(
            "Must not contain options, which the service sets itself. Set others for the role (ALTER ROLE … SET)."
        )
    hosts, ports = str(host).count(",") + 1, str(port).split(",")
    if len(ports) not in {1, hosts} or not all(map(_is_port, ports)):
        raise ValueError(_FORM)
    if hosts > 1 and given.get("target_session_attrs") not in _WRITABLE:
        raise ValueError(
            "Several hosts require ?target_session_attrs=read-write. Otherwise, the service might connect to a standby."
        )
    if hosts > 1 and "hostaddr" in given:
        # The host that answered last is asked first, and would be asked at the address of another one.
        raise ValueError("With several hosts, use host and not hostaddr.")
    seconds = SECONDS_TO_CONNECT_TO_EACH if hosts > 1 or is_one_of_several else SECONDS_TO_CONNECT
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "HOST": host,
        "PORT": port,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": seconds, **_LIFE_SIGNS, **given},
    }


def _is_port(text: str) -> bool:
    """Whether it is a port, or left out."""
    return not text or (text.isdecimal() and 0 < int(text) < 2**16)


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
