"""What Django promises to middlewares, receivers and routers holds for every request: some close the fast path."""

import json

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.core.signals import request_finished, request_started, setting_changed
from django.core.wsgi import get_wsgi_application
from django.db import connection, connections, reset_queries
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from django.utils.module_loading import import_string

from accounts import logins
from config.fastpath import handler
from config.http.middleware import RequestIdMiddleware
from config.server.answers import answer
from orders.models import Order
from orders.views import OrderViewSet
from tests.server.environ import build_environ

COOKIES = ["", "sessionid=none"]


class Refusing:
    """A maintenance mode."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_view(self, request, view, args, kwargs):
        return HttpResponse(status=503)


class Rescuing(Refusing):
    def process_view(self, request, view, args, kwargs):
        return None

    def process_exception(self, request, exception):
        return HttpResponse(type(exception).__name__, status=418)


class Marking(Rescuing):
    def process_template_response(self, request, response):
        response["X-Mark"] = "1"
        return response


class Router:
    asked = []

    def db_for_read(self, model, **hints):
        self.asked.append(model)


def on_request(**options):
    pass


def path_of(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


@pytest.fixture
def token(transactional_db, admin):
    # Outside of a transaction: a server's request begins with a look at its connection, which would end one.
    return logins.log_in(admin.user).access


@pytest.fixture
def call(token):
    """Sends a request as a server does. Returns its status, headers and body."""

    def send(path="/orders", body=None, *, cookie=""):
        environ = build_environ(path, token, body) | ({"HTTP_COOKIE": cookie} if cookie else {})
        found = answer(get_wsgi_application(), environ)
        return found.status, dict(found.headers), b"".join([found.body])

    return send


@pytest.fixture
def takes_fast_path(token):
    return lambda: handler.build_request(build_environ("/orders", token)) is not None


@pytest.fixture
def forget():
    """Lets the handler look at what changed without the knowledge of the settings, and once more behind the test."""

    def send():
        setting_changed.send(sender=None, setting="", value=None, enter=True)

    yield send
    send()


@pytest.fixture
def connect():
    """Connects receivers of signals for the time of a test."""
    connected = []

    def add(signal, receiver):
        signal.connect(receiver)
        connected.append((signal, receiver))

    yield add
    for signal, receiver in connected:
        signal.disconnect(receiver)


@pytest.fixture
def add_middleware(settings):
    def add(kind):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, path_of(kind)]

    return add


# --- Without obstacles


def test_fast_path_is_open(call, takes_fast_path):
    assert handler.find_obstacles() == []
    assert takes_fast_path()
    assert call()[0] == 200


def test_each_middleware_of_the_settings_is_skipped_or_kept_and_no_other_one(settings):
    known = [*handler.SKIPPED_MIDDLEWARE, *handler.KEPT_MIDDLEWARE]
    assert sorted(known) == sorted(settings.MIDDLEWARE)


@pytest.mark.parametrize("name", sorted(handler.KEPT_MIDDLEWARE))
def test_kept_middleware_has_no_hook_that_the_fast_path_would_not_call(name):
    assert [hook for hook in dir(import_string(name)) if hook.startswith("process_")] == []


@pytest.mark.parametrize("name", sorted(handler._KNOWN_RECEIVERS))
def test_receiver_that_the_handler_knows_is_connected(name):
    connected = [reference() for _, reference, *_ in (*request_started.receivers, *request_finished.receivers)]
    assert import_string(name) in connected


# --- Middlewares


@pytest.mark.parametrize("cookie", COOKIES)
def test_kept_middleware_that_is_not_used_is_skipped(call, takes_fast_path, monkeypatch, forget, cookie):
    def refuse(self, get_response):
        raise MiddlewareNotUsed

    assert "Request-Id" in call(cookie=cookie)[1]
    monkeypatch.setattr(RequestIdMiddleware, "__init__", refuse)
    forget()
    assert takes_fast_path()
    status, headers, body = call(cookie=cookie)
    assert (status, json.loads(body)["data"]) == (200, [])
    assert "Request-Id" not in headers


@pytest.mark.parametrize("cookie", COOKIES)
@pytest.mark.parametrize("body", [None, {"item": "Tea", "qty": 1}])
def test_unknown_middleware_refuses_every_request_before_its_view(call, add_middleware, cookie, body):
    # The fast path answered before the middleware came.
    assert call()[0] == 200
    add_middleware(Refusing)
    assert call(body=body, cookie=cookie)[0] == 503
    assert not Order.objects.exists()


@pytest.mark.parametrize("cookie", COOKIES)
def test_exception_reaches_an_unknown_middleware(call, add_middleware, monkeypatch, cookie):
    def fail(self, request, *args, **kwargs):
        raise LookupError

    def reraise(self, exception):
        raise exception

    monkeypatch.setattr(OrderViewSet, "list", fail)
    monkeypatch.setattr(OrderViewSet, "handle_exception", reraise)
    add_middleware(Rescuing)
    status, _, body = call(cookie=cookie)
    assert (status, body) == (418, b"LookupError")


@pytest.mark.parametrize("cookie", COOKIES)
def test_response_of_a_view_reaches_an_unknown_middleware_before_it_is_rendered(call, add_middleware, cookie):
    assert "X-Mark" not in call(cookie=cookie)[1]
    add_middleware(Marking)
    status, headers, _ = call(cookie=cookie)
    assert (status, headers["X-Mark"]) == (200, "1")


# --- Signals


@pytest.mark.parametrize("cookie", COOKIES)
@pytest.mark.parametrize("signal", [request_started, request_finished])
def test_receiver_of_a_signal_runs_for_every_request(call, connect, takes_fast_path, signal, cookie):
    runs = []

    def note(**options):
        runs.append(options["sender"])

    call()
    connect(signal, note)
    assert not takes_fast_path()
    for number in (1, 2):
        assert call(cookie=cookie)[0] == 200
        assert len(runs) == number
    signal.disconnect(note)
    assert takes_fast_path()


def test_receiver_in_the_place_of_djangos_closes_the_fast_path(connect, takes_fast_path):
    # There are as many as before.
    assert takes_fast_path()
    assert request_started.disconnect(reset_queries)
    try:
        connect(request_started, on_request)
        assert not takes_fast_path()
    finally:
        request_started.connect(reset_queries)


def test_stranger_of_the_name_of_djangos_receiver_closes_the_fast_path(connect, takes_fast_path):
    def close_caches(**options):
        pass

    connect(request_finished, close_caches)
    assert not takes_fast_path()


# --- Databases


def test_atomic_requests_run_each_view_in_a_transaction(call, takes_fast_path, monkeypatch, forget):
    def count_transactions():
        with CaptureQueriesContext(connection) as queries:
            assert call()[0] == 200
        return len([query for query in queries if query["sql"].startswith("BEGIN")])

    before = count_transactions()
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    forget()
    assert not takes_fast_path()
    assert count_transactions() == before + 1


@pytest.mark.parametrize("path", ["/orders", "/orders/{}", "/orders?sort=item"])
def test_router_is_asked_which_database_a_row_is_read_from(call, settings, admin, path):
    order = Order.objects.create(user=admin.user, item="Tea", qty=1)
    path = path.format(order.pk)
    assert call(path)[0] == 200
    settings.DATABASE_ROUTERS = [path_of(Router)]
    for _ in range(2):
        Router.asked.clear()
        assert call(path)[0] == 200
        assert Order in Router.asked


# --- Obstacles


def test_each_unknown_middleware_is_named(add_middleware, takes_fast_path):
    add_middleware(Refusing)
    add_middleware(Marking)
    assert handler.find_obstacles() == [f"the middleware {path_of(Refusing)}", f"the middleware {path_of(Marking)}"]
    assert not takes_fast_path()


@pytest.mark.parametrize(
    ("name", "value", "obstacle"),
    [
        ("DATABASE_ROUTERS", [path_of(Router)], "DATABASE_ROUTERS"),
        ("FORCE_SCRIPT_NAME", "/service", "FORCE_SCRIPT_NAME"),
    ],
)
def test_setting_is_named(settings, takes_fast_path, name, value, obstacle):
    assert takes_fast_path()
    setattr(settings, name, value)
    assert handler.find_obstacles() == [obstacle]
    assert not takes_fast_path()


def test_atomic_requests_are_named_with_their_database(monkeypatch, forget, takes_fast_path):
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    forget()
    assert handler.find_obstacles() == ["ATOMIC_REQUESTS of default"]
    assert not takes_fast_path()


@pytest.mark.parametrize(("name", "signal"), [("started", request_started), ("finished", request_finished)])
def test_receiver_is_named_with_its_signal(connect, name, signal):
    connect(signal, on_request)
    assert handler.find_obstacles() == [f"the receiver on_request of request_{name}"]


def test_all_obstacles_are_named_together(add_middleware, settings, connect):
    add_middleware(Refusing)
    settings.DATABASE_ROUTERS = [path_of(Router)]
    connect(request_started, on_request)
    assert len(handler.find_obstacles()) == 3
