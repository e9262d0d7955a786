"""Mail with a link, to users: asked for, sent by `manage.py deliver`, and followed."""

from smtplib import SMTPRecipientsRefused
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils import timezone

from config import audit
from config.api.limits.login_attempts import count_message
from config.api.representation.text import validate_line
from config.api.requests import AnyRequest
from config.http.errors import Detail, DomainError, ErrorCode
from config.models import OutboxEntry
from config.outbox import Dropped, Refused
from config.postgresql.transactions import run_in_transaction
from users import services
from users.links import SETS_PASSWORD, Purpose, build_token, find_user, get_state
from users.models import User

# For each kind of message: its subject, and the text before and after the link.
TEXTS = {
    Purpose.PASSWORD_RESET: (
        "Set a new password",
        "You requested a new password. Use this link within 30 minutes to set it:",
        "If you did not request it, ignore this email: your password stays the same.",
    ),
    Purpose.EMAIL_VERIFICATION: (
        "Verify your email",
        "Use this link within seven days to confirm that this email address is yours:",
        "If you did not expect this email, ignore it.",
    ),
    Purpose.INVITATION: (
        "You are invited",
        "An account has been created for you. Use this link within seven days to set its password:",
        "If you do not want the account, ignore this email: nobody can sign in to it.",
    ),
}


def ask(purpose: Purpose, user: User | None) -> None:
    """Queues a message to a user, in the caller's transaction.

    None is nobody's account. What is done for it is the same, so that it takes the same time; its entry is dropped.
    """
    if not User.objects.lock_key_share(user.pk if user else 0):
        user = None
    OutboxEntry.objects.create(kind=purpose, user=user, parameters={"state": get_state(user or User())})
    audit.record_write(f"{purpose}.requested", user=user)


def count(request: AnyRequest, email: str) -> None:
    """Counts a message to an email, whether or not it is somebody's. Outside of a transaction.

    Raises:
        DomainError: RATE_LIMITED.
    """
    (account,) = User.objects.all().fold_emails(email)
    count_message(request, account)


def ask_for_password_reset(request: AnyRequest, email: str) -> None:
    """Queues a link to the active user of a trusted email who has a password, without revealing whether one exists.

    Raises:
        DomainError: RATE_LIMITED.
    """
    count(request, email)
    user = User.objects.with_email(email).first()
    is_sent = user is not None and user.is_active and user.email_is_trusted and user.has_usable_password()
    run_in_transaction(lambda: ask(Purpose.PASSWORD_RESET, user if is_sent else None))


def ask_for_verification(user: User) -> None:
    """Queues a link with which a user verifies the email, in the caller's transaction.

    Raises:
        DomainError: CONFLICT for a user who is inactive or has verified it.
    """
    if user.email_verified_at is not None or not user.is_active:
        reason = "This email is already verified." if user.is_active else "This user is inactive."
        raise DomainError(ErrorCode.CONFLICT, reason, [Detail("email", reason)])
    ask(Purpose.EMAIL_VERIFICATION, user)


def may_invite(user: User) -> bool:
    return user.is_active and not user.has_usable_password()


def invite(user: User) -> None:
    """Queues a link with which a user without a password sets one, in the caller's transaction.

    Once it is used, the email is trusted.

    Raises:
        DomainError: CONFLICT for a user who is inactive or has a password.
    """
    if not may_invite(user):
        reason = "This user already has a password." if user.is_active else "This user is inactive."
        raise DomainError(ErrorCode.CONFLICT, reason, [Detail("password", reason)])
    ask(Purpose.INVITATION, user)


def send(entry: OutboxEntry) -> None:
    """Sends a message. One of the OUTBOX_SENDERS.

    Raises:
        Dropped: it is nobody's, its link has expired, or the user has changed since it was asked for.
        Refused: the mail server knows no such mailbox.
    """
    purpose, user, state = Purpose(entry.kind), entry.user, entry.parameters["state"]
    if user is None or not user.is_active:
        raise Dropped("nobody to send it to")
    if timezone.now() >= entry.created_at + purpose.lifetime or get_state(user) != state:
        raise Dropped("the link would be expired")
    page = "reset" if purpose in SETS_PASSWORD else "verify"
    token = build_token(purpose, user.pk, state, entry.created_at)
    subject, before, after = TEXTS[purpose]
    link = f"{settings.PUBLIC_URL}/session/{page}/{token}"
    context = {"subject": subject, "before": before, "link": link, "after": after}
    host = urlsplit(settings.PUBLIC_URL).hostname
    message = EmailMultiAlternatives(
        subject,
        render_to_string("users/message.txt", context),
        to=[user.email],
        # One that is sent again is the same message to who gets it.
        headers={"Message-ID": f"<outbox-{entry.pk}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(render_to_string("users/message.html", context), "text/html")
    try:
        message.send()
    except SMTPRecipientsRefused as error:
        codes = [code for code, _reason in error.recipients.values()]
        if all(code >= 500 for code in codes):
            raise Refused(f"SMTP {codes}") from None
        raise


def set_password(token: str, password: str) -> None:
    """Sets the password of the user whom a link was mailed to, which verifies the email, too.

    Raises:
        DomainError: NOT_FOUND for a link that is not good any more.
        django.core.exceptions.ValidationError: the password is too weak. The link stays good.
    """

    def write() -> None:
        user, purpose = find_user(token, *SETS_PASSWORD, lock=True)
        validate_line(password)
        validate_password(password, user)
        audit.record_write(f"{purpose}.used", user=user)
        verified_at = user.email_verified_at or timezone.now()
        services.change(user, {"password": password, "email_verified_at": verified_at, "email_is_trusted": True})

    run_in_transaction(write)


def verify_email(token: str) -> None:
    """Verifies the email of the user whom a link was mailed to.

    Raises:
        DomainError: NOT_FOUND for a link that is not good any more.
    """

    def write() -> None:
        user, purpose = find_user(token, Purpose.EMAIL_VERIFICATION, lock=True)
        audit.record_write(f"{purpose}.used", user=user)
        services.change(user, {"email_verified_at": timezone.now()})

    run_in_transaction(write)
