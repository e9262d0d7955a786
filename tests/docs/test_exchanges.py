"""Every exchange of the guide, as curl shows it; tests/system/docs/test_languages.py runs them in other languages."""

import pytest

from config.site import documentation
from tests.docs.exchanges import PAGES_WITH_EXCHANGES, PAGES_WITH_FUNCTIONS, check_exchanges, read_blocks
from tests.docs.languages import LANGUAGES, Shell


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", ["README", *PAGES_WITH_EXCHANGES])
def test_every_exchange_prints_what_is_shown(page, variables, request):
    check_exchanges(page, Shell(), variables, request)


def test_functions_stand_in_both_languages():
    for page in documentation.PAGES:
        infos = [info for _, info, _ in read_blocks(page) if info in LANGUAGES]
        assert infos == ["python", "javascript"] * (len(infos) // 2)
        assert bool(infos) == (page in (*PAGES_WITH_FUNCTIONS, "oauth", "webhooks"))
