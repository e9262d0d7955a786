"""Mail on your own machine: each message becomes a file, and its link is printed."""

import os
import re
import sys
from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from config.local.secrets import DATA_FOLDER

_LINK = re.compile(r"https?://\S+")


class EmailBackend(BaseEmailBackend):
    """Writes each message into `.data/mail`, and tells its path and its first link on standard error.

    The name of the file is the Message-ID: a message that is sent again is the same file.
    """

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        folder = DATA_FOLDER / "mail"
        # The link of a message opens an account.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for email in email_messages:
            message = email.message()
            path = folder / f"{message['Message-ID'].strip('<>').partition('@')[0]}.eml"
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_bytes(message.as_bytes())
            # A file appears complete, or not at all.
            draft.replace(path)
            links = _LINK.findall(str(email.body))
            print(f"Mail: {path}", *(f"Link: {link}" for link in links[:1]), sep="\n", file=sys.stderr, flush=True)
        return len(email_messages)
