"""Every exchange and every function of the guide, in each of the languages that the pages show.

The exchanges of most pages are run in Python and JavaScript by tests/system/docs/test_languages.py.
"""

import json
from base64 import b64decode
from itertools import product

import pytest

from config.site import documentation, examples
from tests.docs.exchanges import PAGES_WITH_EXCHANGES, check_exchanges, matches, read_blocks
from tests.docs.languages import LANGUAGES, JavaScript, Python, Shell

PAGES_WITH_FUNCTIONS = ("import-users", "walking-lists", "whole-lists", "retries", "polling", "events")
# The others are run by curl alone; `make test-system` runs them in these languages.
IN_EVERY_LANGUAGE = ("first-request", "lists")


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize(
    ("language", "page"),
    [*product([Shell], ["README", *PAGES_WITH_EXCHANGES]), *product([Python, JavaScript], IN_EVERY_LANGUAGE)],
    indirect=["language"],
    ids=lambda value: getattr(value, "name", value),
)
def test_every_exchange_prints_what_is_shown(page, language, variables, request):
    check_exchanges(page, language, variables, request)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_password_beyond_latin_1_is_sent_in_utf_8():
    node = JavaScript()
    node.run("const fetch = async (url, { headers }) => ({ json: () => headers.Authorization })", {})
    (exchange,) = examples.read_session('$ curl -u "zo\u00eb@example.com:$PASSWORD" $API/users\n{}\n')
    ((sent,),) = node.call(exchange, {"API": "", "PASSWORD": "10 \u20ac"})
    node.close()
    assert b64decode(sent.removeprefix("Basic ")).decode() == "zo\u00eb@example.com:10 \u20ac"


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", PAGES_WITH_FUNCTIONS)
def test_every_function_does_what_is_shown(page, language, variables):
    printed: list[str] = []
    compared = 0
    for _, info, block in read_blocks(page):
        if info == language.name:
            printed += [" ".join(map(as_text, values)) for values in language.run(block, variables)]
        elif info == "printed":
            compared += 1
            assert matches(block.splitlines(), printed), (page, printed)
            printed.clear()
    assert compared >= 2
    assert not printed


def test_functions_stand_in_both_languages():
    for page in documentation.PAGES:
        infos = [info for _, info, _ in read_blocks(page) if info in LANGUAGES]
        assert infos == ["python", "javascript"] * (len(infos) // 2)
        assert bool(infos) == (page in (*PAGES_WITH_FUNCTIONS, "oauth", "webhooks"))
