"""DATABASE_URL: what libpq understands, and nothing that would be written to in vain."""

import pytest

from config.postgresql.database_url import parse_database_url

PASSWORD = "open-sesame"


def test_one_host_is_read_into_the_settings_of_django():
    read = parse_database_url("postgresql://ada:p%40ss@db:5433/service?sslmode=require&connect_timeout=3")
    assert [read[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == [
        "ada",
        "p@ss",
        "db",
        "5433",
        "service",
    ]
    assert (read["OPTIONS"]["sslmode"], read["OPTIONS"]["connect_timeout"]) == ("require", "3")


@pytest.mark.parametrize("attributes", ["read-write", "primary"])
def test_several_hosts_are_asked_for_the_one_that_takes_writes(attributes):
    read = parse_database_url(f"postgresql://db1,db2:5433/service?target_session_attrs={attributes}")
    assert (read["HOST"], read["PORT"]) == ("db1,db2", ",5433")
    assert read["OPTIONS"]["target_session_attrs"] == attributes
    assert (
        read["OPTIONS"]["connect_timeout"] < parse_database_url("postgresql://db/service")["OPTIONS"]["connect_timeout"]
    )


def test_what_cannot_be_right_is_refused_without_the_password():
    for url, told in [
        ("mysql://db/service", "PostgreSQL is the only database"),
        ("postgresql://db", "Must name the database"),
        ("postgresql://db1,db2/service", "target_session_attrs=read-write"),
        ("postgresql://db1,db2/service?target_session_attrs=any", "target_session_attrs=read-write"),
        (
            "postgresql://db1,db2/service?target_session_attrs=primary&hostaddr=10.0.0.1,10.0.0.2",
            "use host and not hostaddr",
        ),
        ("postgresql://db/service?options=-csearch_path%3Dx", "ALTER ROLE"),
        ("postgresql://db:eighty/service", "Must be postgresql://"),
        ("postgresql://db:99999/service", "Must be postgresql://"),
        ("postgresql://db/service?port=1,2", "Must be postgresql://"),
        (f"postgresql://ada:%zz{PASSWORD}@db/service", "Must be postgresql://"),
    ]:
        with pytest.raises(ValueError, match=told) as refused:
            parse_database_url(url)
        assert PASSWORD not in str(refused.value)
