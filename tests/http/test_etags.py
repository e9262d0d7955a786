"""Entity tags and the conditions that clients make with them (RFC 9110, sections 8.8 and 13)."""

import re

import pytest

from orders.models import Order
from posts.models import Comment, Post
from tests.api.wire import quickly
from tests.conftest import with_bearer_of, with_key
from users.models import User

STRONG = re.compile(r'"[0-9a-f]{16}-[0-9a-f]{32}"')
OF_A_LIST = re.compile(r'"[0-9a-f]{32}"')
MALFORMED = [
    *("", " ", ",", "x", '"x', 'x"', '"', "'x'", '*, "x"', '"x", *', '"a" "b"', '"a"b', 'w/"a"', 'W/ "a"', '"a b"'),
]
MALFORMED += ["**", "W/", "W/*", '"a";q=1', '"' * 4_001, " " * 8_000 + "x", '"a"' * 2_000]
BODIES = {
    "PUT": {"name": "New", "email": "new@example.com"},
    "PATCH": {"name": "New"},
    "DELETE": None,
}


@pytest.fixture
def sue(make_user):
    return make_user(name="Sue", email="sue@example.com")


@pytest.fixture
def path(sue):
    return f"/users/{sue.pk}"


@pytest.fixture
def post(user, other):
    post = Post.objects.create(user=user.user, title="Title")
    Comment.objects.create(post=post, user=other.user, text="First")
    return post


def tag_of(caller, path, **headers):
    answer = caller.get(path, **headers)
    assert answer.status == 200, answer
    return answer.headers["ETag"]


def name_of(sue):
    return User._base_manager.get(pk=sue.pk).name


# --- The tag


def test_single_resource_has_a_strong_tag_that_stays_while_it_does(admin, path):
    tag = tag_of(admin, path)
    assert STRONG.fullmatch(tag)
    assert tag_of(admin, path) == tag
    assert admin("HEAD", path).headers["ETag"] == tag


def test_credentials_that_get_the_same_bytes_get_the_same_tag(admin, make_user, path):
    assert tag_of(with_key(make_user("admin")), path) == tag_of(admin, path)


@pytest.mark.parametrize("shaped", ["?fields=id", "?envelope=false"])
def test_what_shapes_the_bytes_shapes_the_tag(admin, path, shaped):
    assert tag_of(admin, path + shaped) != tag_of(admin, path)


def test_links_that_the_caller_is_shown_shape_the_tag(admin, support, path):
    assert admin.get(path).data["_links"] != support.get(path).data["_links"]
    assert tag_of(admin, path) != tag_of(support, path)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_answer_of_a_change_has_the_tag_that_a_read_gives(admin, path, method):
    before = tag_of(admin, path)
    changed = admin(method, path, BODIES[method])
    assert changed.status == 200
    assert before != changed.headers["ETag"] == tag_of(admin, path)
    assert changed.headers["Content-Location"] == path


def test_answer_of_a_creation_has_the_tag_that_a_read_gives(admin, user):
    for made in (
        admin.post("/api/v1/users", {"name": "N", "email": "n@example.com"}),
        user.post("/orders", {"item": "Tea", "qty": 1}),
        user.post(f"/users/{user.user.pk}/posts", {"title": "T"}),
    ):
        assert made.status == 201
        caller = admin if "email" in made.data else user
        assert made.headers["ETag"] == tag_of(caller, made.headers["Location"])


def test_change_from_any_door_changes_the_tag(admin, sue, path):
    tags = [tag_of(admin, path)]
    User.objects.filter(pk=sue.pk).update(name="By SQL")
    tags.append(tag_of(admin, path))
    User.objects.get(pk=sue.pk).set_password("another one")
    sue.set_password("another one")
    sue.save(update_fields=["password"])
    tags.append(tag_of(admin, path))
    assert len(set(tags)) == 3


def test_tag_of_a_post_changes_with_its_comments(post, user, other, admin):
    path = f"/posts/{post.pk}"
    comment = Comment.objects.get()
    tags = [tag_of(user, path)]
    for change in (
        lambda: other.patch(f"/comments/{comment.pk}", {"text": "Edited"}),
        lambda: Comment.objects.filter(pk=comment.pk).update(text="By SQL"),
        lambda: user.post(f"{path}/comments", {"text": "Second"}),
        lambda: other.delete(f"/comments/{comment.pk}"),
        lambda: other.post(f"{path}/comments", {"text": "Third"}),
        lambda: admin.delete(f"/users/{other.user.pk}"),
    ):
        change()
        tags.append(tag_of(user, path))
    assert len(set(tags)) == 7
    states = [tag.partition("-")[0] for tag in tags]
    assert len(set(states)) == 7


def test_tag_of_a_list_changes_with_its_page(admin, path):
    before = tag_of(admin, "/users")
    assert OF_A_LIST.fullmatch(before)
    assert tag_of(admin, "/users") == before
    assert tag_of(admin, "/users?envelope=false") != before
    admin.patch(path, {"name": "New"})
    assert tag_of(admin, "/users") != before


def test_errors_deletions_descriptions_and_pages_have_no_tag(admin, path):
    assert "ETag" not in admin.get("/users/0").headers
    assert "ETag" not in admin("OPTIONS", path).headers
    page = admin("HEAD", path, accept="text/html")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "ETag" not in page.headers
    gone = admin.delete(path)
    assert (gone.status, gone.body) == (204, None)
    assert not {"ETag", "Content-Length"} & gone.headers.keys()


# --- If-None-Match


@pytest.mark.parametrize(
    ("method", "form"),
    [
        *(("GET", "{tag}"), ("HEAD", "W/{tag}"), ("GET", '"other", {tag}'), ("HEAD", "*")),
        *(("GET", ', {tag} ,,\t"a,b"'), ("GET", '"a","",{tag}')),
    ],
)
def test_what_the_client_has_is_not_sent_again(admin, path, method, form):
    full = admin(method, path)
    answer = admin(method, path, if_none_match=form.format(tag=full.headers["ETag"]))
    assert (answer.status, answer.body) == (304, None)
    for name in ("ETag", "Cache-Control", "Vary", "API-Version"):
        assert answer.headers[name] == full.headers[name]
    assert answer.headers["Request-Id"]
    assert not {"Content-Type", "Content-Length", "Content-Encoding"} & answer.headers.keys()


@pytest.mark.parametrize("form", ['"other"', 'W/"other"', '{tag}x"', '"{state}"', '"{state}-other"'])
def test_what_the_client_does_not_have_is_sent(admin, path, form):
    tag = tag_of(admin, path)
    given = form.format(tag=tag[:-1], state=tag[1:17])
    assert admin.get(path, if_none_match=given).status == 200


@pytest.mark.parametrize(
    "path", ["/users", "/api/v1/orders?cursor=", "/api-keys", "/api/protected", "/openapi.json", "/"]
)
def test_every_read_answers_304(admin, path):
    assert admin.get(path, if_none_match=tag_of(admin, path)).status == 304


def test_304_of_a_bare_list_brings_its_headers_up_to_date(user):
    Order.objects.create(user=user.user, item="Tea", qty=1)
    path = "/orders?envelope=false&limit=1"
    tag = tag_of(user, path)
    Order.objects.create(user=user.user, item="Tea", qty=1)
    answer = user.get(path, if_none_match=tag)
    assert (answer.status, answer.headers["X-Total-Count"]) == (304, "2")
    assert 'rel="next"' in answer.headers["Link"]


@pytest.mark.parametrize(("method", "form"), [("PUT", "*"), ("PATCH", "{tag}"), ("DELETE", "W/{tag}")])
def test_write_that_must_not_find_what_is_there_is_refused(admin, sue, path, method, form):
    answer = admin(method, path, BODIES[method], if_none_match=form.format(tag=tag_of(admin, path)))
    assert (answer.status, answer.code, answer.fields) == (412, "PRECONDITION_FAILED", {"If-None-Match"})
    assert "ETag" not in answer.headers
    assert name_of(sue) == "Sue"
    assert admin(method, path, BODIES[method], if_none_match='"other"').status in {200, 204}


# --- If-Match


@pytest.mark.parametrize(
    ("method", "form"),
    [("PUT", "{tag}"), ("PATCH", '"other", {tag}'), ("DELETE", "*"), ("DELETE", ' ,{tag}, ""')],
)
def test_write_to_what_the_client_knows_is_done(admin, sue, path, method, form):
    answer = admin(method, path, BODIES[method], if_match=form.format(tag=tag_of(admin, path)))
    assert answer.status == (204 if method == "DELETE" else 200)
    assert name_of(sue) == ("" if method == "DELETE" else "New")


@pytest.mark.parametrize(
    ("method", "form"),
    [("PUT", "{stale}"), ("PATCH", "W/{tag}"), ("DELETE", '"other"'), ("DELETE", '""'), ("PUT", "{stale}, W/{tag}")],
)
def test_write_to_what_the_client_does_not_know_is_refused(admin, sue, path, method, form):
    stale = tag_of(admin, path)
    admin.patch(path, {"status": "inactive"})
    before = admin.get(path)
    answer = admin(method, path, BODIES[method], if_match=form.format(stale=stale, tag=before.headers["ETag"]))
    assert (answer.status, answer.code, answer.fields) == (412, "PRECONDITION_FAILED", {"If-Match"})
    assert answer.headers["Cache-Control"] == "no-store"
    assert "ETag" not in answer.headers
    assert admin.get(path).body == before.body


@pytest.mark.parametrize("read", ["?fields=id", "?envelope=false", "as support", "gzip", "/api/v1"])
def test_tag_of_any_representation_of_the_present_state_will_do(admin, support, read):
    path = f"/posts/{Post.objects.create(user=admin.user, title='T', body='b' * 2_000).pk}"
    caller = support if read == "as support" else admin
    address = f"/api/v1{path}" if read == "/api/v1" else path + read if read.startswith("?") else path
    # The client reads bodies as text: of the coded answer it asks for the headers alone.
    tag = caller("HEAD", address, accept_encoding="gzip" if read == "gzip" else "identity").headers["ETag"]
    assert tag != tag_of(admin, path)
    assert admin.patch(path, {"title": "New"}, if_match=tag).status == 200
    assert admin.patch(path, {"title": "Newer"}, if_match=tag).status == 412


def test_tag_of_another_resource_never_matches(admin, make_user, user, post):
    other = make_user()
    tag = tag_of(admin, f"/users/{make_user().pk}")
    assert admin.patch(f"/users/{other.pk}", {"name": "New"}, if_match=tag).status == 412
    comment = Comment.objects.get()
    assert (
        admin.patch(f"/posts/{post.pk}", {"title": "New"}, if_match=tag_of(admin, f"/comments/{comment.pk}")).status
        == 412
    )


def test_read_of_what_the_client_does_not_know_is_refused(admin, path):
    for address in (path, "/users", "/openapi.json"):
        tag = tag_of(admin, address)
        for form in (tag, "*"):
            assert admin.get(address, if_match=form).status == 200
        refused = admin.get(address, if_match='"other"')
        assert (refused.status, refused.code) == (412, "PRECONDITION_FAILED")
        assert "ETag" not in refused.headers
        # If-Match is asked first (section 13.2.2).
        assert admin.get(address, if_match='"other"', if_none_match=tag).status == 412
        assert admin.get(address, if_match=tag, if_none_match=tag).status == 304
    problem = admin.get(path, if_match='"other"', accept="application/problem+json")
    assert problem.headers["Content-Type"] == "application/problem+json"
    assert problem.body["status"] == 412


def test_key_is_revoked_only_in_the_state_that_was_read(make_user):
    caller = with_bearer_of(make_user())
    made = caller.post("/api-keys", {"name": "k"})
    assert "ETag" not in made.headers
    path = made.headers["Location"]
    tag = tag_of(caller, path)
    assert caller.delete(path, if_match='"other"').status == 412
    assert caller.get(path).data["revoked_at"] is None
    assert caller.delete(path, if_match=tag).status == 204
    assert caller.delete(path, if_match=tag).status == 412
    assert tag_of(caller, path) != tag


# --- What comes before


def test_malformed_header_is_refused_by_name_at_once(admin, sue, path):
    for value in MALFORMED:
        for method, body in {"GET": None, **BODIES}.items():
            with quickly():
                answer = admin(method, path, body, if_match=value, if_none_match=value)
            assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
            assert answer.fields == {"If-Match", "If-None-Match"}
        assert admin.get(path, if_none_match=value).fields == {"If-None-Match"}
        assert name_of(sue) == "Sue"


def test_other_refusals_come_first(admin, user, nobody, *, path):
    for header in ["if_match", "if_none_match"]:
        for value in ["*", '"other"']:
            condition = {header: value}
            assert admin.patch("/users/999999999", {}, **condition).status == 404
            assert nobody.patch(path, {}, **condition).status == 401
            assert user.patch(path, {}, **condition).status == 404
            assert user.post(path, {}, **condition).status == 405
            assert admin("PATCH", path, raw=b"x", content_type="text/plain", **condition).status == 415
            assert admin("PATCH", path, raw=b"{", **condition).code == "MALFORMED_JSON"
            read_only = with_key(admin.user, ["users:read"])
            assert read_only.patch(path, {}, **condition).code == "INSUFFICIENT_SCOPE"


def test_condition_comes_before_what_the_content_says(admin, path):
    assert admin.patch(path, {"name": 5}, if_match='"other"').status == 412
    assert admin.patch(path, {"name": 5}, if_match="*").status == 400
    assert admin.patch(path, {"email": admin.user.email}, if_match='"other"').status == 412


@pytest.mark.parametrize("value", ["*", '"other"', "malformed"])
def test_post_and_options_look_at_no_condition(user, value):
    for header in ("if_match", "if_none_match"):
        assert user.post("/orders", {"item": "Tea", "qty": 1}, **{header: value}).status == 201
        assert user("OPTIONS", "/orders", **{header: value}).status == 200


@pytest.mark.parametrize("date", ["Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "x"])
def test_dates_are_no_condition(admin, path, date):
    for header in ["if_modified_since", "if_unmodified_since"]:
        assert "Last-Modified" not in admin.get(path).headers
        assert admin.get(path, **{header: date}).status == 200
        assert admin.patch(path, {"name": "New"}, **{header: date}).status == 200
