"""A time means the same at every door: in a body, in a filter, and where a read-only one is put back."""

from urllib.parse import quote

import pytest

from orders.models import Order
from posts.models import Comment, Post
from tests.conftest import Caller, with_bearer_of

MOMENT = "2098-12-31T23:00:00.123456Z"
# As Go, Java, JavaScript, .NET, Python, Ruby and spreadsheets print them, and in every case and offset of RFC 3339.
FORMS = (
    *("2098-12-31T23:00:00.123456Z", "2098-12-31t23:00:00.123456z", "2098-12-31T23:00:00.123456789Z"),
    *("2098-12-31T23:00:00.1234569+00:00", "2098-12-31T23:00:00.12345612-00:00", "2099-01-01T00:00:00.123456999+01:00"),
    *("2099-01-01T22:59:00.123456+23:59", "2098-12-30T23:01:00.123456-23:59", "2098-12-31t14:30:00.123456-08:30"),
)
NO_TIMES = (
    *(
        "2098-02-30T12:00:00Z",
        "2098-12-31T24:00:00Z",
        "2098-12-31T23:60:00Z",
        "2098-13-01T00:00:00Z",
        "2098-00-10T00:00:00Z",
    ),
    *(
        "2098-12-31T23:00:60Z",
        "2098-12-31T23:00:00",
        "2098-12-31 23:00:00Z",
        "2098-12-31",
        "20981231T230000Z",
        "23:00:00Z",
    ),
    *("2098-12-31T23:00:00.Z", "2098-12-31T23:00:00,5Z", "2098-12-31T23:00:00.1234567890Z", "2098-12-31T23:00Z"),
    *("2098-12-31T23:00:00+0100", "2098-12-31T23:00:00+01", "2098-12-31T23:00:00+24:00", "2098-12-31T23:00:00+01:60"),
    *(
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00Z",
        "2098-12-31T23:00:00 UTC",
        "2098-W01-1T00:00:00Z",
        "٢098-12-31T23:00:00Z",
    ),
    *("soon", "", "4070908800", "-2098-12-31T23:00:00Z", "12098-12-31T23:00:00Z"),
)


@pytest.mark.parametrize("text", FORMS)
def test_form_of_a_time_is_that_instant_at_every_door(admin: Caller, text: str) -> None:
    made = with_bearer_of(admin.user).post("/api/v2/api-keys", {"name": "n", "expires_at": text})
    assert (made.status, made.data["expires_at"]) == (201, MOMENT)
    order = Order.objects.create(user=admin.user, item="Tea", qty=1, created_at=MOMENT)
    for bound, found in (("gte", [order.pk]), ("lte", [order.pk]), ("gt", []), ("lt", [])):
        path = f"/api/v2/orders?sort=created_at&created_at[{bound}]={quote(text)}"
        assert [row["id"] for row in admin.get(path).data] == found, bound


@pytest.mark.parametrize("text", NO_TIMES)
def test_refusal_of_what_is_no_time_advises_a_form_that_is_taken(admin: Caller, text: str) -> None:
    made = with_bearer_of(admin.user).post("/api/v2/api-keys", {"name": "n", "expires_at": text})
    found = admin.get(f"/api/v2/orders?sort=created_at&created_at[gt]={quote(text)}")
    advice = "Must be an RFC 3339 time such as 2030-01-31T12:00:00Z."
    assert (made.status, made.error["details"]) == (400, [{"field": "expires_at", "message": advice}])
    if text:
        message = f"{advice} Encode a plus sign as %2B."
        assert (found.status, found.error["details"]) == (400, [{"field": "created_at[gt]", "message": message}])


@pytest.mark.parametrize("text", FORMS)
def test_read_only_time_put_back_in_another_form_is_the_present_one(admin: Caller, text: str) -> None:
    post = Post.objects.create(user=admin.user, title="T", created_at=MOMENT)
    comment = Comment.objects.create(user=admin.user, post=post, text="C", created_at=MOMENT)
    for path in (f"/api/v2/posts/{post.pk}", f"/api/v2/comments/{comment.pk}"):
        assert admin.patch(path, {"created_at": text}).status == 200
        assert admin.put(path, {**admin.get(path).data, "created_at": text}).status == 200
    path = f"/api/v2/posts/{post.pk}"
    shown = admin.get(path).data["comments"][0]
    assert admin.patch(path, {"comments": [{**shown, "created_at": text}]}).status == 200


@pytest.mark.parametrize(
    "text", ["2098-12-31T23:00:00.123457Z", "2098-12-31T23:00:00Z", *NO_TIMES[:4], None, 4070905200, True]
)
def test_read_only_time_that_is_another_instant_is_refused(admin: Caller, text: object) -> None:
    post = Post.objects.create(user=admin.user, title="T", created_at=MOMENT)
    Comment.objects.create(user=admin.user, post=post, text="C", created_at=MOMENT)
    path = f"/api/v2/posts/{post.pk}"
    (comment,) = admin.get(path).data["comments"]
    assert admin.patch(path, {"created_at": text}).fields == {"created_at"}
    for other in ({"created_at": text}, {"id": True}, {"more": 1}, {"text": "c"}):
        assert admin.patch(path, {"comments": [{**comment, **other}]}).fields == {"comments"}
    for comments in ([], [comment, comment], [[comment]], [None], {"0": comment}, None):
        assert admin.patch(path, {"comments": comments}).fields == {"comments"}
