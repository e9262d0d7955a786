"""The other query parameters: sort, order, fields, envelope, filters; and parameters that are no text at all."""

from urllib.parse import quote

import pytest

from tests.api.wire import error_of, send
from tests.conftest import Caller

SORTABLE = {
    "/users": {"id", "name", "email", "created_at", "updated_at"},
    "/orders": {"id", "item", "qty", "created_at"},
    "/payments": {"id", "amount", "created_at"},
    "/posts": {"id", "title", "created_at", "updated_at"},
    "/posts/{post}/comments": {"id", "created_at", "updated_at"},
    "/users/{id}/orders": {"id", "item", "qty", "created_at"},
    "/users/{id}/payments": {"id", "amount", "created_at"},
    "/users/{id}/posts": {"id", "title", "created_at", "updated_at"},
}
OF_USER = {"id", "name", "email", "role", "status", "email_verified_at", "external_id", "created_at", "updated_at"}
READABLE = {
    "/users": OF_USER,
    "/users/{id}": OF_USER,
    "/orders": {"id", "user_id", "item", "qty", "created_at"},
    "/payments": {"id", "user_id", "amount", "created_at"},
    "/posts": {"id", "user_id", "title", "body", "comments", "comments_count", "created_at", "updated_at"},
    "/posts/{post}": {"id", "user_id", "title", "body", "comments", "comments_count", "created_at", "updated_at"},
    "/posts/{post}/comments": {"id", "post_id", "user_id", "text", "created_at", "updated_at"},
}
HIDDEN = [
    *("password", "current_password", "row_version", "removed_at", "digest", "is_superuser", "last_login", "pk"),
    "user",
]
HIDDEN += ["_links", "user__email", "user__password", "api_keys__digest", "first_comments"]
COLUMNS = set().union(*READABLE.values())


@pytest.fixture
def address(admin: Caller):
    post = admin.post(f"/users/{admin.user.pk}/posts", {"title": "first"}).data["id"]
    return lambda path: path.format(id=admin.user.pk, post=post)


def refusal(caller: Caller, address: str) -> tuple[int, str, set[str]]:
    answer = caller.get(address)
    assert answer.status == 400, answer
    return answer.status, answer.code, answer.fields


@pytest.mark.parametrize("path", SORTABLE)
def test_list_is_sorted_by_its_sortable_fields_and_nothing_else(admin: Caller, address, path: str) -> None:
    for field in SORTABLE[path]:
        assert admin.get(f"{address(path)}?sort={field}").status == 200
    for name in [*HIDDEN, *sorted(COLUMNS - SORTABLE[path]), "", "-id"]:
        assert refusal(admin, f"{address(path)}?sort={quote(name)}") == (400, "VALIDATION_ERROR", {"sort"})


def test_sort_is_a_name_as_it_stands(admin: Caller) -> None:
    names = [*("", " ", "id ", "-id", "+id", "ID", "Id", "id,id", "?", "1", "id;"), '"id"', "id desc", "ｉd", "\ufffd"]
    for name in [*names, "a" * 5_000]:
        assert refusal(admin, f"/users?sort={quote(name)}") == (400, "VALIDATION_ERROR", {"sort"})


def test_order_is_asc_or_desc_in_lower_case(admin: Caller) -> None:
    for value in ["", "ASC", "Desc", "DESC", "ascending", "up", "1", "-", " asc", "asc ", "asc,desc"]:
        for query in (f"order={quote(value)}", f"cursor=&sort=name&order={quote(value)}"):
            assert refusal(admin, f"/users?{query}") == (400, "VALIDATION_ERROR", {"order"})


@pytest.mark.parametrize("path", READABLE)
def test_fields_choose_what_a_representation_has(admin: Caller, address, path: str) -> None:
    for names in ({"id"}, READABLE[path] - {"id"}, READABLE[path]):
        data = admin.get(f"{address(path)}?fields={','.join(names)}").data
        for item in data if isinstance(data, list) else [data]:
            assert set(item) == names


@pytest.mark.parametrize("path", READABLE)
def test_fields_that_cannot_be_chosen_are_refused(admin: Caller, address, path: str) -> None:
    for name in [*HIDDEN, *sorted(COLUMNS - READABLE[path]), ""]:
        assert refusal(admin, f"{address(path)}?fields={name}") == (400, "VALIDATION_ERROR", {"fields"})


@pytest.mark.parametrize("path", ["/users", "/users/{id}"])
def test_fields_are_names_apart_by_commas(admin: Caller, address, path: str) -> None:
    lists = [
        *("", ",", "id,", ",id", "id,,created_at", "id,id", "ID", "*", " id", "id created_at", "id;created_at"),
        "id,�",
    ]
    for value in [*lists, *(f"id,{name}" for name in HIDDEN), "id," * 10_000, "a" * 5_000]:
        assert refusal(admin, f"{address(path)}?fields={quote(value)}") == (400, "VALIDATION_ERROR", {"fields"})


def test_chosen_fields_leave_a_single_resource_without_links_and_a_page_with_its_own(admin: Caller) -> None:
    assert "_links" in admin.get(f"/users/{admin.user.pk}").data
    assert admin.get(f"/users/{admin.user.pk}?fields=name").body["data"] == {"name": "Ada Admin"}
    assert admin.get("/users?fields=name").body["_links"]["self"] == {"href": "/users?fields=name"}


@pytest.mark.parametrize("path", ["/users", "/users/{id}", "/orders", "/posts/{post}", "/posts/{post}/comments"])
def test_envelope_is_true_or_false(admin: Caller, address, path: str) -> None:
    for value in ["", "1", "0", "yes", "TRUE", "False", "true ", " false", "null", "true,false"]:
        assert refusal(admin, f"{address(path)}?envelope={quote(value)}") == (400, "VALIDATION_ERROR", {"envelope"})


@pytest.mark.parametrize(
    ("name", "allowed"), [("status", ["active", "inactive"]), ("role", ["admin", "support", "user"])]
)
def test_unknown_choice_of_a_filter_is_refused_with_the_allowed_ones(
    admin: Caller, name: str, allowed: list[str]
) -> None:
    for value in ["", "x", "ACTIVE", "Admin", "active ", "active,inactive", "null", "0", "٢", "a" * 5_000]:
        answer = admin.get(f"/users?{name}={quote(value)}")
        assert (answer.status, answer.code, answer.fields) == (400, "VALIDATION_ERROR", {name})
        assert [detail["message"] for detail in answer.error["details"]] == [f"Must be one of: {', '.join(allowed)}."]


def test_filters_narrow_a_list_and_its_total(admin: Caller, make_user) -> None:
    make_user("support", status="inactive")
    wanted = make_user("user", status="inactive")
    make_user("user")
    answer = admin.get("/users?role=user&status=inactive")
    assert ([item["id"] for item in answer.data], answer.meta["total"]) == ([wanted.pk], 1)
    assert admin.get("/users?status=inactive").meta["total"] == 2
    assert admin.get("/users?role=admin&status=inactive").data == []


def test_email_is_compared_whole(admin: Caller, make_user) -> None:
    make_user(email="person@example.com")
    assert admin.get("/users?email=person%40example.com").meta["total"] == 1
    for asked in ["%", "_", "a%", "person@example.co_", " person@example.com", "person@example.com ", "*"]:
        assert admin.get(f"/users?email={quote(asked)}").data == []


def test_repeated_parameter_is_refused_by_name(admin: Caller, address) -> None:
    for path, query in [
        ("/users", "page=1&page=1"),
        ("/users", "page=&page="),
        ("/users", "limit=1&limit=2"),
        ("/users", "offset=1&offset=x"),
        ("/users", "cursor=&cursor="),
        ("/users", "sort=id&sort=name"),
        ("/users", "order=asc&order=asc"),
        ("/users", "status=active&status=inactive"),
        ("/users", "role=user&r%6Fle=user"),
        ("/users", "email=a&email=b"),
        ("/users", "fields=id&fields=name"),
        ("/users", "envelope=true&envelope=true"),
        ("/users/{id}", "fields=id&fields=id"),
        ("/users/{id}", "envelope=true&envelope=false"),
        ("/posts/{post}/comments", "limit=1&limit=1"),
    ]:
        assert refusal(admin, f"{address(path)}?{query}") == (400, "VALIDATION_ERROR", {query.partition("=")[0]})


def test_every_wrong_parameter_is_named_at_once(admin: Caller) -> None:
    query = "page=0&limit=-1&sort=x&order=X&fields=zzz&envelope=1&status=zz&role=zz"
    wrong = {"page", "limit", "sort", "order", "fields", "envelope", "status", "role"}
    assert refusal(admin, f"/users?{query}") == (400, "VALIDATION_ERROR", wrong)
    assert refusal(admin, f"/users/{admin.user.pk}?fields=x&envelope=x")[2] == {"fields", "envelope"}


@pytest.mark.parametrize(
    "name", ["sort", "order", "fields", "envelope", "status", "role", "cursor", "page", "limit", "offset", "email"]
)
def test_control_character_in_a_parameter_never_gets_through(admin: Caller, name: str) -> None:
    for value in ["%00", "id%00", "%01", "%0A", "%7F", "%C2%85", "%1B%5B0m", "asc%0D%0AX-Evil:1"]:
        answer = admin.get(f"/users?{name}={value}")
        if name in {"page", "limit", "offset", "email"}:
            assert (answer.status, answer.body.get("meta", {}).get("limit") or answer.fields) in [
                (200, 20),
                (400, {name}),
            ]
        else:
            assert (answer.status, answer.fields) == (400, {name})
        assert "X-Evil" not in answer.headers


def test_broken_percent_encoding_is_no_fault_of_ours(admin: Caller) -> None:
    for junk in ["%", "%z", "%zz", "%f", "%ff", "%C3", "%ED%A0%80", "%C0%80", "%F4%90%80%80", "%u0041"]:
        assert admin.get(f"/users?page={junk}").meta["page"] == 1
        assert admin.get(f"/users?email={junk}").data == []
        assert refusal(admin, f"/users?sort={junk}")[2] == {"sort"}
        assert admin.get(f"/users?{junk}={junk}").status == 200
        assert admin.get(f"/users?cursor={junk}").code == "INVALID_CURSOR"


@pytest.mark.parametrize("query", ["foo=1", "foo=1&cursor=", "foo=1&page=1", "foo=1&offset=0"])
def test_unknown_parameter_is_refused_beside_all_known_ones_by_the_second_version(admin: Caller, query: str) -> None:
    (detail,) = admin.get(f"/api/v2/users?{query}").error["details"]
    lookups = ("gt", "gte", "lt", "lte")
    bounds = {f"{column}[{lookup}]" for column in ("id", "created_at", "updated_at") for lookup in lookups}
    names = {
        *(
            "cursor",
            "email",
            "envelope",
            "external_id",
            "fields",
            "id",
            "limit",
            "offset",
            "order",
            "page",
            "q",
            "role",
            "sort",
        ),
        "status",
    }
    known = ", ".join(sorted({*names, *bounds, "version"}))
    assert detail == {"field": "foo", "message": f"Unknown parameter. Available: {known}."}


@pytest.mark.parametrize("modes", [["page", "cursor"], ["offset", "cursor"], ["page", "offset", "cursor"]])
def test_two_ways_through_a_list_are_told_once_by_the_second_version(admin: Caller, modes: list[str]) -> None:
    details = admin.get(f"/api/v2/users?{'&'.join(f'{mode}=1' for mode in modes)}").error["details"]
    assert details == [{"field": mode, "message": f"Send only one of {' and '.join(modes)}."} for mode in modes]


@pytest.mark.parametrize("path", ["/users", "/posts/1", "/", "/api/protected"])
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_more_than_a_thousand_parameters_are_refused(admin: Caller, path: str, accept: str) -> None:
    query = "&".join(f"p{number}=1" for number in range(1_001))
    response = send("GET", f"{path}?{query}", headers={**admin.headers, "Accept": accept})
    assert response.status_code == 400
    assert b"VALIDATION_ERROR" in response.content
    if accept == "application/json":
        error_of(response, 400, "VALIDATION_ERROR")


def test_a_thousand_parameters_are_ignored(admin: Caller) -> None:
    assert admin.get("/users?" + "&".join(f"p{number}=1" for number in range(1_000))).status == 200
