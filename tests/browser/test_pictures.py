"""The pages look as they did. Where one should change, `make pictures` takes it anew; commit it with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser

from tests.browser.conftest import ARTEFACTS
from tests.browser.pictures import FOLDER, PAGES, SCHEMES, WIDTHS, served_demo, shrink, signed_in_page, take
from tests.service import Service

# A pixel differs if its brightness does by so much: smoothed letters do not.
MAX_DIFFERENCE = 48
# So much of a picture may differ.
MAX_SHARE = 0.004


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[Service, str]]:
    with served_demo() as served:
        yield served


def compare(picture: Image.Image, kept: Image.Image) -> float:
    """The share of pixels that differ."""
    if picture.size != kept.size:
        return 1.0
    difference = ImageChops.difference(picture, kept.convert("RGB")).convert("L")
    return sum(difference.histogram()[MAX_DIFFERENCE:]) / (picture.width * picture.height)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_look_as_in_their_pictures(browser: Browser, demo: tuple[Service, str], width: int, scheme: str) -> None:
    changed = {}
    with signed_in_page(browser, *demo, width, scheme) as page:
        for name in sorted(PAGES, key="landing".__eq__):
            picture = shrink(take(page, name))
            file = f"{name}-{width}-{scheme}.webp"
            share = compare(picture, Image.open(FOLDER / file))
            if share > MAX_SHARE:
                ARTEFACTS.mkdir(exist_ok=True)
                picture.save(ARTEFACTS / file)
                changed[name] = f"{share:.1%} differ: see test-artefacts/{file}"
    assert changed == {}


def test_form_rule_that_hits_json_is_seen(browser: Browser, demo: tuple[Service, str]) -> None:
    """A class of a form that Pygments uses too once put each key of the JSON on a line of its own."""
    with signed_in_page(browser, *demo, 1440, "light") as page:
        page.route(
            "**/browsable.css",
            lambda route: route.fulfill(
                body=f"{route.fetch().text()} .key {{ display: grid; margin-top: 1rem; }}", content_type="text/css"
            ),
        )
        picture = shrink(take(page, "resource"))
    assert compare(picture, Image.open(FOLDER / "resource-1440-light.webp")) > MAX_SHARE
