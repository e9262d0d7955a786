"""What `make run` makes up for itself on a machine of one's own: the data folder and the secrets."""

import json
import os
import secrets
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / ".data"


def made_up_secrets() -> dict[str, str]:
    """The secrets of this checkout, made at the first call and the same ever after.

    Returns a dict with the keys SECRET_KEY and JWT_SIGNING_KEY.
    """
    path = DATA / "secrets.json"
    # Others may pass through, as the account does that root's PostgreSQL runs as; what is inside is closed by itself.
    DATA.mkdir(mode=0o711, exist_ok=True)
    if not path.exists():
        made = {name: secrets.token_urlsafe(48) for name in ("SECRET_KEY", "JWT_SIGNING_KEY")}
        draft = path.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(json.dumps(made))
        try:
            # A link appears whole or not at all, and the first of two processes wins.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    found: dict[str, str] = json.loads(path.read_text())
    return found
