"""The release. This is the only place for its number; pyproject.toml reads it."""

import os
from pathlib import Path

VERSION = "1.0.0.dev0"


def _read_commit(git: Path) -> str:
    """The commit of a checkout, or COMMIT, with which an image is built; empty where there is neither."""
    try:
        head = (git / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        if branch == head:
            return head
        if (git / branch).exists():
            return (git / branch).read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
        return next(line.partition(" ")[0] for line in packed if line.endswith(f" {branch}"))
    except (OSError, StopIteration):
        return os.environ.get("COMMIT", "")


# Read once, for the loaded code: the checkout may change under a running process.
COMMIT = _read_commit(Path(__file__).resolve().parents[1] / ".git")
