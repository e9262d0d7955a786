"""The entry document, from which a client reaches everything else."""

import pytest

from tests.conftest import Caller


@pytest.mark.parametrize(
    ("path", "prefix", "credentials", "version"),
    [
        ("/", "", "/api", 2),
        ("/api", "/api", "/api", 2),
        ("/api/v1", "/api/v1", "/api/v1", 1),
        ("/api/v2", "/api/v2", "/api/v2", 2),
    ],
)
def test_links_stay_under_the_prefix_of_the_request(
    db: None, path: str, prefix: str, credentials: str, version: int
) -> None:
    links = Caller().get(path).data["_links"]
    assert {name: link["href"] for name, link in links.items()} == {
        "self": path,
        **{name: f"{prefix}/{name}" for name in ("users", "orders", "posts", "payments", "api-keys", "versions")},
        **{name: f"{credentials}/{name}" for name in ("login", "token/refresh", "logout")},
        "protected": f"{credentials}/protected",
        "documentation": "/docs",
        "schema": f"/openapi.json?version={version}",
    }
    assert {name for name, link in links.items() if "method" in link} == {"login", "token/refresh", "logout"}
    assert links["logout"]["method"] == "POST"


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1"])
def test_every_link_is_answered(admin: Caller, path: str) -> None:
    for name, link in Caller().get(path).data["_links"].items():
        status = admin.fetch(link.get("method", "GET"), link["href"]).status_code
        assert status == (400 if "method" in link else 200), name
