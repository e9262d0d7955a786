"""The forms of a page: what they offer, to whom, and how one signs in and out."""

import json
import re

from posts.models import Post
from tests.api.browsable.conftest import HTML, ada_token, shown_json
from tests.api.wire import send
from users.models import User


def test_form_of_a_patch_requires_nothing(ada, page_of, make_user):
    page = page_of(ada(f"/api/v1/users/{make_user().pk}"))
    assert "required" in page.inputs["put-name"]
    assert page.fields["PATCH"]
    assert not [
        name for name, attributes in page.inputs.items() if name.startswith("patch-") and "required" in attributes
    ]


def test_form_shows_fields_and_bounds(ada, page_of):
    page = page_of(ada("/api/v1/orders"))
    assert list(page.fields["POST"]) == ["user_id", "item", "qty"]
    assert (
        page.inputs["post-qty"] | {"type": "number", "min": "1", "max": "1000000", "step": "1"}
        == (page.inputs["post-qty"])
    )
    assert "required" in page.inputs["post-qty"]
    assert "required" not in page.inputs["post-user_id"]
    assert page.inputs["post-user_id"]["type"] == "number"
    assert page.inputs["post-item"]["maxlength"] == "200"
    assert "Idempotency-Key" in page.headers
    payment = page_of(ada("/api/v1/payments")).inputs["post-amount"]
    assert (payment["min"], payment["max"], payment["step"]) == ("0.01", "9999999999.99", "0.01")


def test_amount_is_a_number_in_version_1_and_text_in_version_2(ada, page_of):
    kinds = {
        version: page_of(ada(f"/api/v{version}/payments")).fields["POST"]["amount"]["data-kind"] for version in (1, 2)
    }
    assert kinds == {1: "raw", 2: "string"}


def test_forms_of_a_resource_begin_with_what_it_is(ada, uma, page_of):
    response = ada(f"/api/v2/users/{uma.pk}")
    page = page_of(response)
    assert list(page.forms) == ["sign-out", "PUT", "PATCH", "DELETE", "OPTIONS"]
    assert list(page.fields["PUT"]) == ["name", "email", "role", "status", "external_id", "password"]
    assert json.loads(page.fields["PATCH"]["name"]["data-present"]) == "Uma User"
    assert page.inputs["patch-name"]["value"] == "Uma User"
    tag = ada(f"/api/v2/users/{uma.pk}", Accept="application/json").headers["ETag"]
    assert page.inputs["patch-if-match"]["value"] == page.inputs["delete-if-match"]["value"] == tag
    assert "data-present" not in page.fields["PUT"]["password"]


def test_tag_in_a_form_is_good_for_a_write(ada, uma, page_of):
    path, token = f"/users/{uma.pk}", ada_token(ada)
    tag = page_of(ada(path)).inputs["patch-if-match"]["value"]
    sent = {"X_CSRFToken": token, "If_Match": tag, "Content_Type": "application/merge-patch+json"}
    changed = page_of(ada(path, "PATCH", b'{"name": "New"}', "application/merge-patch+json", **sent))
    assert changed.inputs["patch-name"]["value"] == "New"
    assert changed.inputs["patch-if-match"]["value"] != tag
    refused = ada(path, "PATCH", b'{"name": "Newer"}', "application/merge-patch+json", **sent)
    page_of(refused, 412)
    assert b"PRECONDITION_FAILED" in refused.content
    assert User.objects.get(pk=uma.pk).name == "New"


def test_form_offers_only_what_the_caller_may_send(make_user, signed_in, uma, page_of):
    post = Post.objects.create(user=uma, title="Title")
    own, support = signed_in(uma), signed_in(make_user("support"))
    mine = page_of(own(f"/users/{uma.pk}"))
    assert list(mine.fields["PATCH"]) == ["name", "email", "password", "current_password"]
    assert "POST" not in page_of(own("/users")).forms
    assert list(page_of(own("/orders")).fields["POST"]) == ["item", "qty"]
    assert list(page_of(own(f"/users/{uma.pk}/posts")).fields["POST"]) == ["title", "body"]
    for path in (f"/users/{uma.pk}", f"/posts/{post.pk}", f"/users/{uma.pk}/posts"):
        assert set(page_of(support(path)).forms) <= {"sign-out", "query", "OPTIONS"}, path


def test_part_of_a_resource_has_no_forms_but_a_link_to_the_whole(ada, uma, page_of):
    page = page_of(ada(f"/users/{uma.pk}?fields=id,name"))
    assert set(page.forms) == {"sign-out", "OPTIONS"}
    assert f"/users/{uma.pk}" in page.links


def test_address_without_get_offers_its_post(ada, page_of):
    for path, fields in [
        ("/api/login", ["email", "password"]),
        ("/api/token/refresh", ["refresh_token"]),
        ("/api/logout", ["refresh_token"]),
        ("/api/password-resets/x", ["password"]),
        ("/api/email-verifications/x", []),
        ("/users/1/invitations", []),
        ("/webhooks/1/pings", []),
        ("/webhooks/1/replays", ["cursor"]),
    ]:
        page = page_of(ada(path), 405)
        assert "POST" in page.forms
        assert list(page.fields.get("POST", ())) == fields
        assert all(page.inputs[f"post-{name}"]["type"] == "password" for name in fields if name == "password")


def test_new_key_is_shown_this_once(ada, page_of):
    page_of(ada("/api-keys"))
    made = ada("/api-keys", "POST", b'{"name": "k"}', "application/json", X_CSRFToken=ada_token(ada))
    key = json.loads(shown_json(made))["data"]
    assert made.headers["Cache-Control"] == "no-store"
    assert key["key"].encode() not in ada(f"/api-keys/{key['id']}").content
    page = page_of(ada(f"/api-keys/{key['id']}/rotations"), 405)
    assert list(page.fields["POST"]) == ["overlap_seconds"]


def test_page_says_that_its_forms_need_scripts(ada):
    text = ada("/orders").content.decode()
    assert "JavaScript" in re.search("<noscript>(.*?)</noscript>", text)[1]
    assert all("disabled" in button for button in re.findall('<button class="send[^>]*>', text))


# --- Sign-in and sign-out


def test_anonymous_is_led_to_the_sign_in_and_back(db, page_of):
    response = send("GET", "/api/v1/users?limit=3", headers={"Accept": HTML})
    assert "/session/login?next=%2Fapi%2Fv1%2Fusers%3Flimit%3D3" in page_of(response, 401).links
    # Not Basic, for which a browser opens a dialog instead of showing the page.
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="users"'
    assert "Basic" in send("GET", "/users").headers["WWW-Authenticate"]
    assert "csrftoken" not in response.cookies


def test_who_is_signed_in_can_sign_out(ada, page_of):
    response = ada("/nowhere")
    text = page_of(response, 404).text
    assert "Ada Admin" in text
    token = re.search(rb'csrfmiddlewaretoken" value="([^"]+)"', response.content)[1].decode()
    out = ada.client.post("/session/logout", {"csrfmiddlewaretoken": token, "next": "/users"})
    assert (out.status_code, out.headers["Location"]) == (302, "/users")
    assert ada("/users").status_code == 401


def test_page_without_the_token_changes_nothing(ada, uma, page_of):
    page_of(ada(f"/users/{uma.pk}", "DELETE"), 403)
    assert User.objects.filter(pk=uma.pk).exists()
