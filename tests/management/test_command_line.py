"""The command line: the help of each command, errors of one line, exit codes and progress bars."""

import re
import shlex
from io import StringIO

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.db import connection

import manage
from config.management.command import ServiceCommand
from config.management.commands import purge
from tests.api.test_failures import database_away
from tests.conftest import own_session

APPS = {"config", "users", "orders", "posts", "payments", "accounts"}
COMMANDS = {name: load_command_class(app, name) for name, app in sorted(get_commands().items()) if app in APPS}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(capfd, monkeypatch):
    """Runs a command as `manage.py` does. Returns its exit code, and what it wrote to the standard error."""
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments: str) -> tuple[object, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            manage.main(["manage.py", *arguments])
        return ended.value.code, ended.value.code if isinstance(ended.value.code, str) else capfd.readouterr().err

    return run


def test_every_command_of_ours_is_a_command_of_the_service():
    assert {"seed", "purge", "recount", "serve", "create_user", "changepassword", "create_api_key"} <= set(COMMANDS)
    assert all(isinstance(command, ServiceCommand) for command in COMMANDS.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_tells_what_a_command_does_its_arguments_and_an_example(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    parser = COMMANDS[name].create_parser("manage.py", name)
    text = parser.format_help()
    description, _, rest = text.partition("\n\n")[2].partition("\n\n")
    assert description[0].isupper()
    assert description.endswith(".")
    assert all(action.help for action in parser._actions)
    example = rest.rpartition("Example:\n  ")[2].strip()
    assert max(map(len, text.splitlines())) <= 90
    # What the example says can be typed.
    words = shlex.split(example.replace("\\\n", ""))
    parser.parse_args(words[words.index("manage.py") + 2 :])
    assert words[words.index("manage.py") + 1] == name


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["seed"], 2, "the following arguments are required: --users; see manage.py seed --help"),
        (["seed", "--users", "many"], 2, "argument --users: a whole number from 0 to 999999999"),
        (["seed", "--users", "1", "--colour", "red"], 2, "unrecognized arguments: --colour red"),
        (["purge", "now"], 2, "unrecognized arguments: now"),
        (["create_api_key", "nobody@example.com"], 1, "'nobody@example.com'; manage.py create_user creates one"),
        (["create_api_key", "a\nb"], 1, r"no user has the email 'a\nb'"),
        (["create_api_key", "a@example.com", "--days", "0"], 2, "a whole number of days from 1 to 36500"),
        (["create_api_key", "a@example.com", "--scopes", "all"], 2, "users:read"),
        (["changepassword", "nobody@example.com"], 1, "manage.py create_user creates one"),
        (["create_user", "a@example.com", "--name", "A", "--role", "boss"], 2, "admin"),
        (
            ["create_oauth_application", "A", "--owner", "a@example.com", "--grant", "password", "--scopes", "x"],
            2,
            "authorization-code",
        ),
        (["createsuperuser", "--noinput"], None, "use: manage.py create_user EMAIL --name N --role admin"),
        (["createapplication"], None, "use: manage.py create_oauth_application"),
        *(([name], None, "use: manage.py purge") for name in ("cleartokens", "clearsessions", "clearcimdapplications")),
    ],
)
def test_wrong_call_is_one_line_with_the_way_out(run, arguments, code, told):
    ended, line = run(*arguments)
    assert told in line
    assert len(line.splitlines()) == 1
    assert code is None or ended == code


@own_session
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "arguments", [["seed", "--users", "1"], ["purge"], ["recount"], ["create_api_key", "a@example.com"]]
)
def test_database_that_is_away_is_one_line(run, arguments):
    with database_away():
        code, line = run(*arguments, "--skip-checks")
    assert code == 1
    assert len(line.splitlines()) == 1
    assert "port 1 failed" in line
    assert line.endswith(" Check DATABASE_URL, and that PostgreSQL is running.\n")


@pytest.mark.django_db(transaction=True)
def test_tables_of_another_release_are_told_with_the_way_out():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE config_counter RENAME TO elsewhere")
    try:
        with pytest.raises(CommandError, match=r'\AThe tables .*"config_counter".*\. Run manage\.py migrate\.\Z'):
            call_command("purge", stdout=StringIO())
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO config_counter")


@pytest.mark.django_db(transaction=True)
def test_interrupt_is_one_line_that_tells_what_is_left(run, monkeypatch):
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(purge, "_purge", interrupted)
    code, line = run("purge")
    assert code == 130
    told = "CommandError: Interrupted: deleted rows stay deleted. Run the command again for the rest."
    assert line.splitlines() == [told]


@pytest.mark.django_db(transaction=True)
def test_seed_shows_a_bar_on_a_terminal_and_none_elsewhere(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for screen in (StringIO(), Terminal()):
        monkeypatch.setattr("sys.stderr", screen)
        call_command("seed", users=3, stdout=StringIO())
        assert bool(re.search(r"Rows .*[0-9]+/[0-9]+", screen.getvalue())) == bool(screen.getvalue()) == screen.isatty()
