"""What a user looks like, and which values its fields take."""

from datetime import UTC, datetime, timedelta

from tests.conftest import TIME

SHOWN = {"id", "name", "email", "role", "status", "email_verified_at", "external_id", "created_at", "updated_at"}
ANN = {"name": "Ann Lee", "email": "ann@example.com"}


def test_user_has_exactly_the_fields_of_the_contract(admin, make_user):
    row = make_user(name="Ann Lee", email="Ann.Lee@Example.com", status="inactive")
    answer = admin.get(f"/users/{row.pk}")
    assert answer.status == 200
    assert set(answer.body) == {"success", "data"}
    assert answer.body["success"] is True
    assert set(answer.data) == SHOWN | {"_links"}
    assert {name: answer.data[name] for name in ("id", "name", "email", "role", "status")} == {
        "id": row.pk,
        "name": "Ann Lee",
        "email": "Ann.Lee@Example.com",
        "role": "user",
        "status": "inactive",
    }
    assert type(answer.data["id"]) is int


def test_times_are_utc_with_z_and_of_now(admin):
    created = admin.post("/users", ANN).data
    for name in ("created_at", "updated_at"):
        assert TIME.fullmatch(created[name]), created[name]
        age = datetime.now(UTC) - datetime.fromisoformat(created[name])
        assert abs(age) < timedelta(minutes=1)


def test_created_user_has_the_defaults_and_is_where_location_says(admin):
    answer = admin.post("/users", ANN)
    assert answer.status == 201
    assert answer.headers["Location"] == f"/users/{answer.data['id']}"
    assert (answer.data["role"], answer.data["status"]) == ("user", "active")
    read = admin.get(answer.headers["Location"])
    assert read.status == 200
    assert read.data == answer.data
