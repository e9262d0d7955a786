"""Whose address a request counts for, behind the proxies of a deployment."""

from types import SimpleNamespace

from config.http.client_address import client_address

PROXY = "192.0.2.200"


def find(forwarded, remote=PROXY):
    return str(client_address(SimpleNamespace(META={"HTTP_X_FORWARDED_FOR": forwarded, "REMOTE_ADDR": remote})))


def test_entry_of_the_proxy_is_read_in_the_forms_that_proxies_write(settings):
    for entry, address in [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7:52011", "203.0.113.7"),
        ('"203.0.113.7:52011"', "203.0.113.7"),
        ("2001:DB8::1", "2001:db8::1"),
        ("2001:db8::1:443", "2001:db8::1:443"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ('"[2001:db8::1]:443"', "2001:db8::1"),
        ('\t"[2001:db8::1]" ', "2001:db8::1"),
        ("[fe80::1%eth0]:443", "fe80::1"),
        ("fe80::1%25eth0", "fe80::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("[::ffff:203.0.113.7]:443", "203.0.113.7"),
        *(
            (text, PROXY)
            for text in ("unknown", "unknown:80", "_hidden", '""', "[]", ":80", "-", "203.0.113", "\xb2", "é")
        ),
    ]:
        settings.TRUSTED_PROXIES = 1
        assert find(f"198.51.100.1, {entry}") == address
        assert find(entry) == address


def test_entry_that_counts_is_as_far_from_the_end_as_there_are_proxies(settings):
    for proxies, forwarded, address in [
        (0, "203.0.113.7", PROXY),
        (2, "198.51.100.1, 203.0.113.7:1, 10.0.0.9:2", "203.0.113.7"),
        # The outer proxy does not tell whom it was called by: it is the client of the inner one.
        (2, "198.51.100.1, unknown, 10.0.0.9:2", "10.0.0.9"),
        (2, "198.51.100.1, unknown, unknown", PROXY),
        (2, "203.0.113.7", "203.0.113.7"),
        (1, "", PROXY),
        (1, "198.51.100.1, ", PROXY),
    ]:
        settings.TRUSTED_PROXIES = proxies
        assert find(forwarded) == address


def test_address_of_the_socket_may_be_missing(settings):
    settings.TRUSTED_PROXIES = 1
    assert find("203.0.113.7", remote="") == "203.0.113.7"
    assert find("unknown", remote="") == "0.0.0.0"  # noqa: S104 - a socket without an address
