"""Registration of applications: by administrators, in the Django admin and on the command line."""

import io
import json
import re

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Application
from config.models import AuditEvent
from tests.accounts.conftest import run_action
from tests.accounts.oauth.actors import CALLBACK, Registered, bearer

ADD = "/admin/accounts/application/add/"


@pytest.fixture
def run(make_user):
    make_user(email="Olga@example.com")

    def create(*arguments, name="Robot", owner="olga@example.com", grant="client-credentials", scopes="users:read"):
        out, errors = io.StringIO(), io.StringIO()
        options = ["--owner", owner, "--grant", grant, "--scopes", scopes]
        call_command("create_oauth_application", name, *options, *arguments, stdout=out, stderr=errors)
        assert errors.getvalue() == ""
        printed = json.loads(out.getvalue())
        row = Application.objects.get(client_id=printed["client_id"])
        return Registered(row, printed.get("client_secret")), printed

    return create


def test_command_registers_a_machine(run):
    machine, printed = run(scopes="users:read orders:read users:read")
    assert printed.keys() == {"client_id", "client_secret"}
    assert machine.row.allowed_scopes == ["users:read", "orders:read"]
    token = machine.act().body["access_token"]
    assert bearer(token).get("/api/protected").data["user"]["email"] == "Olga@example.com"


def test_command_registers_an_application_of_the_code_grant(run, person):
    second = "https://client.example/second"
    uris = ("--redirect-uri", CALLBACK, "--redirect-uri", second)
    client, _ = run(*uris, grant="authorization-code", scopes="users:read orders:read")
    assert person.tokens(client)["scope"] == "users:read orders:read"
    assert client.row.redirect_uris.split() == [CALLBACK, second]


def test_command_gives_a_public_client_no_secret(run, person):
    scopes = "users:read orders:read"
    public, printed = run("--public", "--redirect-uri", CALLBACK, grant="authorization-code", scopes=scopes)
    assert printed.keys() == {"client_id"}
    assert person.tokens(public)["scope"] == scopes


def test_command_refuses_wrong_input_in_one_line(run):
    for arguments, options in [
        ([], {"owner": "nobody@example.com"}),
        ([], {"grant": "password"}),
        ([], {"scopes": "users:fly"}),
        ([], {"scopes": ""}),
        ([], {"scopes": "  "}),
        ([], {"name": ""}),
        ([], {"name": "\u3164"}),
        ([], {"name": "x" * 101}),
        ([], {"name": "a\0b"}),
        (["--public"], {}),
        ([], {"grant": "authorization-code"}),
        (["--redirect-uri", "http://client.example/cb"], {"grant": "authorization-code"}),
        (["--redirect-uri", "http://127.0.0.1/cb"], {"grant": "authorization-code"}),
        (["--redirect-uri", "https://client.example/cb#f"], {"grant": "authorization-code"}),
        (["--redirect-uri", "https://*.client.example/cb"], {"grant": "authorization-code"}),
        (["--redirect-uri", "https://u:p@client.example/cb"], {"grant": "authorization-code"}),
        (["--redirect-uri", "https://client.example;x/cb"], {"grant": "authorization-code"}),
        (["--redirect-uri", "javascript:alert(1)"], {"grant": "authorization-code"}),
        (["--redirect-uri", "com.example.app:/cb"], {"grant": "authorization-code"}),
        (["--redirect-uri", "/cb"], {"grant": "authorization-code"}),
    ]:
        with pytest.raises(CommandError) as refusal:
            run(*arguments, **options)
        assert str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert not Application.objects.exists()


def test_command_takes_http_on_loopback_while_debugging(run, settings):
    settings.DEBUG = True
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"]}
    run("--redirect-uri", "http://127.0.0.1:7000/cb", grant="authorization-code")
    with pytest.raises(CommandError):
        run("--redirect-uri", "http://client.example/cb", grant="authorization-code")


def form(**changes):
    filled = {
        "name": "Robot",
        "owner": "",
        "client_type": "confidential",
        "authorization_grant_type": "authorization-code",
        "redirect_uris": CALLBACK,
        "allowed_scopes": ["users:read", "orders:read"],
    }
    return filled | changes


def test_admin_shows_the_secret_once_and_keeps_it_nowhere(pages, person):
    answer = pages.post(ADD, form())
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    secret = re.search(r"<p><code>([^<]+)</code> <button", answer.content.decode())[1]
    row = Application.objects.get()
    assert row.owner is None
    assert person.tokens(Registered(row, secret))["scope"] == "users:read orders:read"
    assert not any(secret in cookie.value for cookie in pages.cookies.values())
    shown = pages.get(f"/admin/accounts/application/{row.pk}/change/").content.decode()
    assert secret not in shown
    assert row.client_secret not in shown
    assert row.client_id in shown
    assert secret not in repr(list(AuditEvent.objects.values()))


def test_admin_refuses_what_the_command_refuses(pages):
    for changes, field in [
        ({"authorization_grant_type": "client-credentials"}, "owner"),
        ({"authorization_grant_type": "password"}, "authorization_grant_type"),
        ({"redirect_uris": ""}, "redirect_uris"),
        ({"redirect_uris": "http://client.example/cb"}, "redirect_uris"),
        ({"allowed_scopes": ["users:fly"]}, "allowed_scopes"),
        ({"owner": "999999"}, "owner"),
    ]:
        answer = pages.post(ADD, form(**changes))
        assert answer.status_code == 200
        assert field in answer.context["adminform"].form.errors
        assert not Application.objects.exists()


def test_admin_changes_scopes_and_not_the_kind(pages, client, person):
    token = person.tokens(client)["access_token"]
    path = f"/admin/accounts/application/{client.row.pk}/change/"
    changed = form(name="Reader", allowed_scopes=["orders:read"], authorization_grant_type="client-credentials")
    assert pages.post(path, changed).status_code == 302
    assert bearer(token).get("/api/protected").data["scopes"] == ["orders:read"]
    client.row.refresh_from_db()
    assert client.row.authorization_grant_type == "authorization-code"
    assert AuditEvent.objects.get(event="oauth_application.changed").facts["changed"] == ["allowed_scopes"]
    assert client.exchange(person.code(client, scope="orders:read")).status == 200


LIST = "/admin/accounts/application/"


def rotate(pages, *clients, **options):
    return run_action(pages, LIST, "rotate_secret", *(client.row for client in clients), **options)


def test_admin_gives_a_new_secret_once_and_the_old_one_ends(pages, machine):
    token = machine.act().body["access_token"]
    assert "stops working immediately" in rotate(pages, machine, confirmed=False).content.decode()
    assert machine.act().status == 200
    answer = rotate(pages, machine)
    assert "no-store" in answer["Cache-Control"]
    secret = re.search(r"<p><code>([^<]+)</code> <button", answer.content.decode())[1]
    assert machine.act().body["error"] == "invalid_client"
    assert Registered(machine.row, secret).act().status == 200
    assert bearer(token).get("/api/protected").status == 200
    assert secret not in repr(list(AuditEvent.objects.values()))
    assert AuditEvent.objects.get(event="oauth_application.secret_rotated").user == machine.row.owner


def test_admin_gives_a_secret_to_one_confidential_application_alone(pages, client, public, machine):
    for chosen in ([public], [client, machine]):
        answer = rotate(pages, *chosen)
        assert answer.status_code == 302
    public.row.refresh_from_db()
    assert public.row.client_secret == ""
    assert machine.act().status == 200


@pytest.mark.parametrize("door", ["single", "bulk"])
def test_admin_removes_an_application_with_its_tokens(pages, client, person, door):
    token = person.tokens(client)["access_token"]
    if door == "single":
        answer = pages.post(f"/admin/accounts/application/{client.row.pk}/delete/", {"post": "yes"})
    else:
        answer = run_action(pages, LIST, "delete_selected", client.row)
    assert answer.status_code == 302
    assert not Application.objects.exists()
    assert bearer(token).get("/api/protected").status == 401
