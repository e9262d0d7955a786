"""The import of users from a CSV file: each line adds a user by the rules of the API, and all are added or none."""

import csv
import io
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse

from config.admin.base import ServiceAdmin, get_principal
from config.api.bulk import BulkMixin
from config.api.principal import Principal
from config.http.errors import DomainError
from config.postgresql import transactions
from users.messages import invite, may_invite
from users.models import User
from users.serializers import UserSerializer

REQUIRED_COLUMNS = ("name", "email")
COLUMNS = (*REQUIRED_COLUMNS, "role", "status", "external_id")
# Which no export has.
SECRET_COLUMN = "password_hash"
KNOWN_COLUMNS = (*COLUMNS, SECRET_COLUMN)
# An export has them, and only the service sets them.
IGNORED_COLUMNS = ("id", "email_verified_at", "created_at", "updated_at")
# A line costs three milliseconds or more in the one thread of a worker, once for the preview and once for the import.
MAX_LINES = 1_000
MAX_BYTES = 512 * 1024
MAX_PREVIEW_LINES = 20


class _Importer(BulkMixin):
    """Adds users like lines of the API's newest version, and reports the result of each.

    Args:
        principal: the administrator who imports.
    """

    is_partial = True

    def __init__(self, principal: Principal) -> None:
        self.context = {"principal": principal, "version": settings.API_VERSIONS[-1]}

    def get_line_serializer(self) -> UserSerializer:
        return UserSerializer(data={}, context=self.context)

    def get_address_values(self) -> dict[str, object]:
        return {}


class Line(NamedTuple):
    """A line of a file: its number, and its cells by the names of the columns. An empty cell means the default."""

    number: int
    cells: Mapping[str, str]


def import_users(
    principal: Principal, lines: Sequence[Line], *, dry_run: bool, is_inviting: bool = False
) -> list[tuple[int, str]]:
    """Adds a user for each line, unless one of them is wrong.

    Args:
        principal: the administrator who imports.
        lines: of a file.
        dry_run: rolls the additions back.
        is_inviting: whether users without a password are invited.

    Returns:
        The errors, each with the number of its line.
    """
    with transaction.atomic():
        given = [{name: line.cells[name] for name in KNOWN_COLUMNS if line.cells.get(name)} for line in lines]
        outcomes = _Importer(principal).add_lines(given)
        errors = [
            (line.number, f"{detail.field}: {detail.message}")
            for line, outcome in zip(lines, outcomes, strict=True)
            if isinstance(outcome, DomainError)
            for detail in outcome.details
        ]
        transaction.set_rollback(dry_run or bool(errors))
        if not (dry_run or errors):
            users = [user for user in outcomes if isinstance(user, User)]
            LogEntry.objects.log_actions(principal.user.pk, users, ADDITION, "Imported.")
            ids = [user.pk for user in users] if is_inviting else []
            for user in filter(may_invite, User.objects.filter(pk__in=ids).order_by("pk")):
                invite(user)
    return errors


def parse_csv(text: str) -> list[Line]:
    """Parses a CSV file whose first line names the columns.

    Raises:
        ValidationError: the file as a whole cannot be read.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        reader.fieldnames = header = [name.strip().lower() for name in reader.fieldnames or ()]
        _validate_header(header)
        lines = [Line(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        raise ValidationError(f"Line {reader.line_num} is not valid CSV: {error}.") from None
    for line in lines:
        # More cells than the header stand under None; of fewer, those that are missing are None.
        if None in line.cells or None in line.cells.values():
            raise ValidationError(f"Line {line.number} has more or fewer cells than the header.")
    if not lines:
        raise ValidationError("The file has no rows below the header.")
    if len(lines) > MAX_LINES:
        raise ValidationError(f"The file has more than {MAX_LINES:,} lines. Split it into smaller files.")
    return lines


def _validate_header(header: list[str]) -> None:
    missing = [name for name in REQUIRED_COLUMNS if name not in header]
    unknown = [name for name in header if name not in {*KNOWN_COLUMNS, *IGNORED_COLUMNS}]
    if missing:
        raise ValidationError(f"The header must name the columns, separated by commas. Missing: {_join(missing)}.")
    if unknown:
        raise ValidationError(f"Unknown columns: {_join(unknown)}. Available: {_join(KNOWN_COLUMNS)}.")
    if len(set(header)) < len(header):
        raise ValidationError("The header names a column twice.")


def _join(names: Iterable[str]) -> str:
    """Joins the first names for a message, cut to a length that a page can show."""
    return ", ".join(name[:50] or "(empty)" for name in list(names)[:10])


class FileForm(forms.Form):
    file = forms.FileField(
        label="CSV file",
        help_text=f"UTF-8, up to {MAX_LINES:,} lines. The first line has the column names: {_join(REQUIRED_COLUMNS)}, "
        f"and optionally {_join(KNOWN_COLUMNS[2:])}. Users without a {SECRET_COLUMN} have no password until they set "
        "one.",
    )

    def clean_file(self) -> list[Line]:
        file: UploadedFile = self.cleaned_data["file"]
        if file.size is None or file.size > MAX_BYTES:
            raise ValidationError(f"The file is larger than {MAX_BYTES // 1024} KiB. Split it into smaller files.")
        try:
            # Spreadsheets write a byte order mark first.
            self.text = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValidationError("The file is not UTF-8. Save it as CSV UTF-8 and upload it again.") from None
        return parse_csv(self.text)


class ConfirmForm(forms.Form):
    """Carries the text of the previewed file to its confirmation, where it is validated again.

    So the file is stored nowhere, and any worker on any machine may answer the confirmation. It is encoded, so that no
    hash of a password stands in the page as it is.
    """

    content = forms.CharField(widget=forms.HiddenInput, strip=False)
    invite = forms.BooleanField(label="Email an invitation to users without a password", required=False)

    def clean_content(self) -> list[Line]:
        try:
            text = urlsafe_b64decode(self.cleaned_data["content"]).decode()
        except ValueError:
            raise ValidationError("Upload the file again.") from None
        return parse_csv(text)


class UserImportMixin(ServiceAdmin):
    """Adds the page on which a file of users is chosen, previewed and confirmed."""

    def get_urls(self) -> list[URLPattern]:
        return [self.build_url_pattern("import", self.import_view), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        context = {"has_import_permission": self.has_add_permission(request)}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def import_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        if "content" in request.POST:
            return self._confirm(request, ConfirmForm(request.POST))
        form = FileForm(None, request.FILES) if request.method == "POST" else FileForm()
        if not form.is_valid():
            return self._render(request, form=form)
        lines = form.cleaned_data["file"]
        return self._import(request, lines, dry_run=True) or self._render(
            request,
            confirm_form=ConfirmForm(initial={"content": urlsafe_b64encode(form.text.encode()).decode()}),
            total=len(lines),
            preview=[line.cells for line in lines[:MAX_PREVIEW_LINES]],
            more=max(0, len(lines) - MAX_PREVIEW_LINES),
            sends_mail=settings.SENDS_MAIL,
        )

    def _confirm(self, request: HttpRequest, form: ConfirmForm) -> HttpResponse:
        if not form.is_valid():
            # The hidden field was forged or cut off. Its errors would not help: the file has to be chosen again.
            self.message_user(request, "The upload was incomplete. Upload the file again.", messages.ERROR)
            return self._render(request, form=FileForm())
        lines, is_inviting = form.cleaned_data["content"], settings.SENDS_MAIL and form.cleaned_data["invite"]
        if refusal := self._import(request, lines, dry_run=False, is_inviting=is_inviting):
            return refusal
        self.message_user(request, f"Imported {len(lines):,} users.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:users_user_changelist"))

    def _import(self, request: HttpRequest, lines: Sequence[Line], **options: bool) -> HttpResponse | None:
        """Imports lines. Returns the page that tells their errors, if they have any."""
        principal = get_principal(request)
        errors = transactions.run_in_transaction(lambda: import_users(principal, lines, **options))
        if not errors:
            return None
        invalid = len({number for number, _ in errors})
        return self._render(request, form=FileForm(), errors=errors, invalid=invalid, total=len(lines))

    def _render(self, request: HttpRequest, **context: object) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "title": "Import users"}
        return TemplateResponse(request, "admin/users/user/import.html", shared | context)
