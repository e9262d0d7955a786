"""The data folder and the generated secrets of a local installation, as `make run` starts it."""

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

DATA_FOLDER = Path(__file__).resolve().parents[2] / ".data"


def get_local_secrets() -> dict[str, str]:
    """The secrets of this checkout by name, SECRET_KEY and JWT_SIGNING_KEY; the first call generates them."""
    path = DATA_FOLDER / "secrets.json"
    # Other accounts may traverse the folder, as root's PostgreSQL must; its contents have their own permissions.
    DATA_FOLDER.mkdir(mode=0o711, exist_ok=True)
    if not path.exists():
        _generate_secrets(path)
    local_secrets: dict[str, str] = json.loads(path.read_text())
    return local_secrets


def _generate_secrets(path: Path) -> None:
    generated = {name: secrets.token_urlsafe(48) for name in ("SECRET_KEY", "JWT_SIGNING_KEY")}
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(generated))
    try:
        # A hard link is atomic: the file appears complete, and the first of two processes wins.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
