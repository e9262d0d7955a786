"""The machine's own Chromium, and how it is started."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Without the rest it looks up its maker's hosts, which is nobody's business here.
FLAGS = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
