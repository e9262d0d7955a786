"""Static files: whole, in gzip for those who accept it, and known again by the tag of what was sent."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders

SCRIPT = "config/browsable.js"


def fetch(client: Any, name: str = SCRIPT, method: str = "GET", **headers: str) -> tuple[Any, bytes]:
    response = client.generic(method, f"/static/{name}", headers=headers)
    return response, b"".join(response.streaming_content)


def read(name: str) -> bytes:
    path = finders.find(name)
    assert path is not None
    return Path(path).read_bytes()


def test_text_is_sent_in_gzip_where_the_client_accepts_it(client):
    plain, content = fetch(client)
    gzipped, compressed = fetch(client, Accept_Encoding="gzip, deflate, br")
    assert content == gzip.decompress(compressed) == read(SCRIPT)
    assert (plain.get("Content-Encoding"), gzipped["Content-Encoding"]) == (None, "gzip")
    assert gzipped["Content-Length"] == str(len(compressed))
    assert len(compressed) < len(content) / 2
    for name in ("Content-Type", "Cache-Control", "Last-Modified", "Vary"):
        assert plain[name] == gzipped[name]
    assert "Accept-Encoding" in plain["Vary"]


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_file_that_has_not_changed_is_not_sent_again(client, coding):
    first, _ = fetch(client, Accept_Encoding=coding)
    again, content = fetch(client, Accept_Encoding=coding, If_None_Match=first["ETag"])
    assert (again.status_code, content, again["ETag"]) == (304, b"", first["ETag"])
    assert "Accept-Encoding" in again["Vary"]


def test_tag_of_one_coding_does_not_stand_for_the_other(client):
    plain, _ = fetch(client)
    assert fetch(client, Accept_Encoding="gzip", If_None_Match=plain["ETag"])[0].status_code == 200


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_head_has_the_headers_of_get(client, coding):
    got, _ = fetch(client, Accept_Encoding=coding)
    headed, content = fetch(client, method="HEAD", Accept_Encoding=coding)
    assert content == b""
    names = ("Content-Type", "Content-Length", "Content-Encoding", "ETag", "Vary")
    assert [headed.get(name) for name in names] == [got.get(name) for name in names]


def test_range_is_one_of_the_file_as_it_is_stored(client):
    response, content = fetch(client, Accept_Encoding="gzip", Range="bytes=0-9")
    assert (response.status_code, content) == (206, read(SCRIPT)[:10])
    assert "Content-Encoding" not in response


@pytest.mark.parametrize("accepted", ["br", "gzip;q=0", "identity, gzip;q=0.5"])
def test_who_does_not_want_gzip_gets_none(client, accepted):
    response, content = fetch(client, Accept_Encoding=accepted)
    assert "Content-Encoding" not in response
    assert content == read(SCRIPT)
