"""Which private names of libraries the project uses: the fast path those of its table, all else next to none."""

import ast
import inspect
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import packages_distributions, version
from io import BytesIO
from pathlib import Path
from textwrap import dedent

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import ResponseHeaders
from django.utils.module_loading import import_string
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.values import MultiProcessValue
from rest_framework.request import ForcedAuthentication, Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.test import force_authenticate

from config.fastpath.private_names import CHECKED_VERSIONS, PRIVATE_ATTRIBUTES, PRIVATE_NAMES

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = ("config", "users", "orders", "posts", "payments", "accounts")
FAST_PATH = "config/fastpath/"
PRIVATE_NAMES_FILE = f"{FAST_PATH}private_names.py"

# Their libraries document them, in spite of the underscore.
DOCUMENTED = {
    "_asdict": "of named tuples",
    "_base_manager": "of Django's models",
    "_db": "of Django's managers",
    "_default_manager": "of Django's models",
    "_fields": "of named tuples",
    "_get_running_loop": "exported by asyncio for event loops",
    "_meta": "of Django's models",
    "_replace": "of named tuples",
    "_set_running_loop": "exported by asyncio for event loops",
    "_request": "of DRF's requests: Django's",
    "_state": "of Django's model instances",
    "_value_": "of enum members",
}
# What else is used outside of the fast path, by the file and the reason.
ALLOWED = {
    "accounts/oauth/consent.py": {
        "_add_iss_to_redirect": "the toolkit adds RFC 9207's issuer in views of its own alone",
    },
    "accounts/oauth/server.py": {
        "_code_challenge_methods": "oauthlib has no setting for the methods of PKCE",
        "_extract_params": "the toolkit makes an oauthlib request in no other way",
        "_get_escaped_full_path": "a hook of the toolkit",
    },
    "accounts/oauth/validator.py": {
        "_create_refresh_token": "a hook of the toolkit",
        "_save_bearer_token": "what the toolkit's save_bearer_token does in its transaction",
    },
    "config/server/request_log.py": {
        "_cached_user": "request.user would ask the database where no view has",
    },
    "config/api/reading.py": {
        "_cached_user": "the same",
    },
    "config/api/schema/operations.py": dict.fromkeys(
        (
            *("_get_parameters", "_insert_field_validators", "_is_list_view"),
            *("_map_serializer", "_map_serializer_field", "_postprocess_serializer_schema"),
        ),
        "a hook of drf-spectacular, whose extensions are subclasses",
    ),
    "config/api/listing/filter_values.py": {"_field": "what the property `field` of django-filter's filters keeps"},
    "config/management/command.py": {"_fill_text": "the hook of argparse's own help formatters"},
    "config/management/commands/serve.py": {
        "SocketHolder": "Granian makes one of an address alone, not of a socket that is there",
        "_drop_shared_socket": "the hook of Granian's server at its end",
        "_init_shared_socket": "the hook of Granian's server that opens one socket for all workers",
        "_reload": "the hook of Granian's server for SIGHUP",
        "_respawn_workers": "Granian has no setting for how often",
        "_shd": "the socket that Granian's server gives its next worker",
        "_spawn_worker": "the hook of Granian's server that starts a worker",
        "_sso": "the socket of all workers, which there is none of",
    },
    "config/server/slow_process.py": {"_exit": "os._exit, which Python documents for the child of a fork"},
    "config/admin/related.py": {
        "_registry": "no public method of the site has its models in the order of their registration",
    },
    "config/site/sessions.py": {"_validate_session_key": "the hook of Django's sessions"},
    "users/admin.py": {"_add_view": "Django's add_view is it in a transaction"},
    "users/models.py": {"_get_session_auth_hash": "the one place where Django makes the hash of a session"},
}


def is_private(name):
    return name.startswith("_") and not name.endswith("__") and name != "_"


@cache
def find_modules():
    paths = (path for package in PROJECT for path in (ROOT / package).rglob("*.py"))
    return [
        Module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths if "migrations" not in path.parts
    ]


class Module:
    """The private names that a module uses, and those that it has itself."""

    def __init__(self, path, text):
        self.path = path
        self.tree = ast.parse(text)

    @property
    def imported(self):
        """Private names and modules of libraries."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in PROJECT:
                names = [alias.name for alias in node.names]
                private = any(map(is_private, (node.module or "").split(".")))
                yield from (name for name in names if private or is_private(name))

    @property
    def of_others(self):
        """Attributes of objects that are not the method's own, but for those that the module gives to its own."""
        used = {name for name, is_own in find_attributes(self.tree) if not is_own}
        return used - (find_assigned(self.tree) - self.inherited)

    @property
    def of_self(self):
        """Attributes and methods of the method's own object that no class here defines, or a library's does, too."""
        classes = [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]
        defined = set().union(*map(find_definitions, classes))
        used = {name for name, is_own in find_attributes(self.tree) if is_own}
        return (used - defined) | ((used | defined) & self.inherited)

    @cached_property
    def inherited(self):
        return set().union(*map(find_names_of, self._get_library_classes()))

    def _get_library_classes(self):
        """The classes of libraries that the classes of the module inherit from."""
        name = self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        own = [kind for _, kind in inspect.getmembers(import_module(name), inspect.isclass) if kind.__module__ == name]
        classes = {base for kind in own for base in kind.__mro__}
        return [kind for kind in classes if kind.__module__.partition(".")[0] not in (*PROJECT, "builtins")]

    @property
    def names(self):
        return {*self.imported, *self.of_others, *self.of_self}


def find_attributes(tree):
    """The private attributes that code names, each with whether it is one of `self`, `cls` or `super()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, is_own(node.value)
        elif isinstance(node, ast.Call):
            # `vars(made).update(_state=…)`
            yield from ((each.arg, False) for each in node.keywords if each.arg and is_private(each.arg))
            if isinstance(node.func, ast.Name) and node.func.id in {"getattr", "hasattr", "setattr", "delattr"}:
                owner, name, *_ = node.args
                if isinstance(name, ast.Constant) and is_private(name.value):
                    yield name.value, is_own(owner)


def is_own(node):
    is_super = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    return is_super or (isinstance(node, ast.Name) and node.id in {"self", "cls"})


def find_definitions(tree):
    """The private names that code defines, annotates or assigns."""
    names = find_assigned(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return set(filter(is_private, names))


def find_assigned(tree):
    """The private attributes that methods give to their own object."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {node.attr for node in nodes if is_own(node.value) and is_private(node.attr)}


@cache
def find_names_of(kind):
    """The private names that a class of a library defines or uses."""
    try:
        tree = ast.parse(dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return frozenset(filter(is_private, vars(kind)))
    return find_definitions(tree)


def make_forced():
    forced = HttpRequest()
    force_authenticate(forced, AnonymousUser(), "token")
    return forced


def make_asked():
    asked = Request(HttpRequest(), authenticators=[ForcedAuthentication(AnonymousUser(), "token")])
    assert asked.user.is_anonymous
    return asked


def make_request():
    return WSGIRequest({"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.input": BytesIO()})


def make_connection():
    connection.ensure_connection()
    return connection.connection


def make_values():
    values = MmapedDict("values.db")
    values.close()
    return values


def make_value():
    value = MultiProcessValue()("counter", "n", "n", (), (), "Help.")
    value._file.close()
    return value


INSTANCES = {
    "django.core.handlers.wsgi.WSGIRequest": make_request,
    "django.http.HttpRequest": make_forced,
    "django.http.HttpResponse": HttpResponse,
    "django.http.QueryDict": QueryDict,
    "django.http.response.ResponseHeaders": lambda: ResponseHeaders({}),
    "prometheus_client.mmap_dict.MmapedDict": make_values,
    "prometheus_client.values.MultiProcessValue": make_value,
    "psycopg.Connection": make_connection,
    "rest_framework.request.Request": make_asked,
    "rest_framework.response.Response": Response,
    "rest_framework.serializers.Serializer": Serializer,
}


def get_names(table):
    return [(owner, name) for owner, names in table.items() for name in names]


# --- The table of the fast path


@pytest.mark.parametrize(("owner", "name"), get_names(PRIVATE_NAMES))
def test_private_name_is_there(owner, name):
    try:
        found = import_module(owner)
    except ModuleNotFoundError:
        found = import_string(owner)
    assert hasattr(found, name)


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize(("owner", "name"), get_names(PRIVATE_ATTRIBUTES))
def test_private_attribute_is_there(owner, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert name in vars(INSTANCES[owner]())


@pytest.mark.parametrize("library", CHECKED_VERSIONS)
def test_library_has_the_version_that_was_checked(library):
    assert version(library) == CHECKED_VERSIONS[library], (
        f"Read the changes of {library}, mend what they move, then write its new version to {PRIVATE_NAMES_FILE}."
    )


def test_each_library_of_the_table_has_a_checked_version():
    packages = packages_distributions()
    used = {owner.partition(".")[0] for owner in (*PRIVATE_NAMES, *PRIVATE_ATTRIBUTES)}
    libraries = {name.lower().replace("_", "-") for package in used for name in packages[package]}
    assert libraries - {"django-stubs"} == set(CHECKED_VERSIONS)


def test_fast_path_uses_the_private_names_of_the_table_and_no_others():
    used = set().union(*(module.names for module in find_modules() if module.path.startswith(FAST_PATH)))
    known = {name for _, name in (*get_names(PRIVATE_NAMES), *get_names(PRIVATE_ATTRIBUTES))}
    assert used - set(DOCUMENTED) == known


# --- All else


def test_no_other_module_uses_private_names_without_a_reason():
    used = {
        module.path: names
        for module in find_modules()
        if not module.path.startswith(FAST_PATH) and (names := module.names - set(DOCUMENTED))
    }
    assert used == {path: set(names) for path, names in ALLOWED.items()}


# --- The search itself


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from psycopg._queries import PostgresQuery", {"PostgresQuery"}),
        ("from django.db import _private", {"_private"}),
        ("from config.fastpath.views import _Part", set()),
        ("request._data", {"_data"}),
        ("del request._data", {"_data"}),
        ("getattr(request, '_data', None)", {"_data"}),
        ("vars(row).update(_state=1)", {"_state"}),
        ("class A:\n    def f(self): return self._data", {"_data"}),
        ("class A:\n    def f(self): self._data = 1", set()),
        ("class A:\n    def f(self): self._data = 1\ndef f(a): return a._data", set()),
        ("class A:\n    def _f(self): return self.b._f()", {"_f"}),
        ("class A:\n    def _f(self): return self._f()", set()),
        ("class A:\n    _b = 1\n    def f(self): return self._b", set()),
    ],
)
def test_search_finds_names_of_others(tmp_path, text, names):
    module = Module("made.py", text)
    module.inherited = set()
    assert module.names == names


def test_search_finds_what_a_class_overrides():
    (module,) = [each for each in find_modules() if each.path == "config/fastpath/http.py"]
    assert "_store" in module.of_self
