"""The import of users from a CSV file: each line adds a user by the rules of the API, and all are added or none."""

from __future__ import annotations

import csv
import io
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import tablib
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
from import_export.instance_loaders import BaseInstanceLoader
from import_export.resources import Resource
from import_export.results import Result

from config.admin.base import ServiceAdmin, get_principal
from config.api.principal import Principal
from config.http.errors import DomainError
from config.postgresql import transactions
from users import services
from users.messages import invite, may_invite
from users.models import User
from users.serializers import UserSerializer

REQUIRED_COLUMNS = ("name", "email")
COLUMNS = (*REQUIRED_COLUMNS, "role", "status")
# An export has them, and only the service sets them.
IGNORED_COLUMNS = ("id", "email_verified_at", "created_at", "updated_at")
# A line costs three milliseconds or more in the one thread of a worker, once for the preview and once for the import.
MAX_LINES = 1_000
MAX_BYTES = 512 * 1024
MAX_PREVIEW_LINES = 20
_LINE_NUMBER = "line"


class _ImportedUserSerializer(UserSerializer):
    def create(self, validated_data: dict[str, Any]) -> User:
        return super().create({"is_recorded": False, **validated_data})


class UserResource(Resource):
    """Imports each row by the serializer of the API, in its newest version.

    Args:
        principal: the administrator who imports.
    """

    class Meta:
        skip_diff = True
        instance_loader_class = BaseInstanceLoader
        import_id_fields: tuple[str, ...] = ()

    def __init__(self, principal: Principal) -> None:
        super().__init__()
        self.context = {"principal": principal, "version": settings.API_VERSIONS[-1]}

    def get_or_init_instance(self, instance_loader: BaseInstanceLoader, row: Mapping[str, str]) -> tuple[User, bool]:
        return User(), True

    def import_instance(self, instance: User, row: Mapping[str, str], **options: object) -> None:
        # An empty cell stands for the default.
        data = {name: row[name] for name in COLUMNS if row.get(name)}
        self.serializer = _ImportedUserSerializer(data=data, context=self.context)
        if not self.serializer.is_valid():
            raise ValidationError({name: list(map(str, errors)) for name, errors in self.serializer.errors.items()})

    def save_instance(self, instance: User, is_create: bool, row: Mapping[str, str], **options: object) -> None:
        try:
            user = self.serializer.save()
        except DomainError as error:
            raise ValidationError({detail.field: [detail.message] for detail in error.details}) from None
        instance.pk, instance.name, instance.email = user.pk, user.name, user.email

    def get_diff_headers(self) -> list[str]:
        """The columns that the result repeats of an invalid row: its line number, for the report."""
        return [_LINE_NUMBER]

    def import_users(self, lines: tablib.Dataset, *, dry_run: bool) -> Result:
        """Adds the users, unless a line is invalid.

        Args:
            lines: the lines of the file, as `parse_csv` returns them.
            dry_run: rolls the additions back.

        Returns:
            The result, with the reasons in `invalid_rows` if nothing was added.

        Raises:
            Exception: an error that is not the file's, such as a deadlock.
        """
        # Not the library's transactions: they would set a savepoint for each line, beside that of the service.
        with transaction.atomic():
            result = self.import_data(lines, use_transactions=False, retain_instance_in_row_result=True)
            for row in result.error_rows:
                raise row.errors[0].error
            transaction.set_rollback(dry_run or bool(result.invalid_rows))
        return result


def list_errors(result: Result) -> list[tuple[int, str]]:
    """Lists the line number in the file and the message of each error."""
    return [
        (row.values[0], f"{field}: {message}")
        for row in result.invalid_rows
        for field, messages in row.error_dict.items()
        for message in messages
    ]


def parse_csv(text: str) -> tablib.Dataset:
    """Parses a CSV file whose first line names the columns, and adds the line numbers as a column.

    Raises:
        ValidationError: the file as a whole cannot be read.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        _validate_header(header)
        lines = tablib.Dataset(headers=[_LINE_NUMBER, *header])
        for cells in reader:
            if len(cells) not in {0, len(header)}:
                message = f"Line {reader.line_num} has {len(cells)} cells, but the header has {len(header)}."
                raise ValidationError(message)
            if cells:
                lines.append([reader.line_num, *cells])
            if len(lines) > MAX_LINES:
                raise ValidationError(f"The file has more than {MAX_LINES:,} lines. Split it into smaller files.")
    except csv.Error as error:
        raise ValidationError(f"Line {reader.line_num} is not valid CSV: {error}.") from None
    if not lines:
        raise ValidationError("The file has no rows below the header.")
    return lines


def _validate_header(header: list[str]) -> None:
    missing = [name for name in REQUIRED_COLUMNS if name not in header]
    unknown = [name for name in header if name not in {*COLUMNS, *IGNORED_COLUMNS}]
    if missing:
        raise ValidationError(f"The header must name the columns, separated by commas. Missing: {_join(missing)}.")
    if unknown:
        raise ValidationError(f"Unknown columns: {_join(unknown)}. Available: {_join(COLUMNS)}.")
    if len(set(header)) < len(header):
        raise ValidationError("The header names a column twice.")


def _join(names: Iterable[str]) -> str:
    """Joins the first names for a message, cut to a length that a page can show."""
    return ", ".join(name[:50] or "(empty)" for name in list(names)[:10])


class FileForm(forms.Form):
    file = forms.FileField(
        label="CSV file",
        help_text=f"UTF-8, with the column names {_join(REQUIRED_COLUMNS)} and perhaps role and status in the first "
        f"line; up to {MAX_LINES:,} lines. The users have no password until an administrator sets one.",
    )

    def clean_file(self) -> str:
        file: UploadedFile = self.cleaned_data["file"]
        if file.size is None or file.size > MAX_BYTES:
            raise ValidationError(f"The file is larger than {MAX_BYTES // 1024} KiB. Split it into smaller files.")
        try:
            # Spreadsheets write a byte order mark first.
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValidationError("The file is not UTF-8. Save it as CSV UTF-8 and upload it again.") from None


class ConfirmForm(forms.Form):
    """Carries the text of the previewed file to its confirmation, where it is validated again.

    So the file is stored nowhere, and any worker on any machine may answer the confirmation.
    """

    content = forms.CharField(widget=forms.HiddenInput, strip=False)
    invite = forms.BooleanField(label="Invite those without a password by mail", required=False)

    def clean_content(self) -> str:
        try:
            return urlsafe_b64decode(self.cleaned_data["content"]).decode()
        except ValueError:
            raise ValidationError("Upload the file again.") from None

    @classmethod
    def from_text(cls, text: str) -> ConfirmForm:
        return cls(initial={"content": urlsafe_b64encode(text.encode()).decode()})


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
        is_confirmed = "content" in request.POST
        form: forms.Form = FileForm()
        if request.method == "POST":
            form = ConfirmForm(request.POST) if is_confirmed else FileForm(None, request.FILES)
            if form.is_valid():
                text, *invites = form.cleaned_data.values()
                try:
                    lines = parse_csv(text)
                    if not is_confirmed:
                        return self._preview(request, text, lines)
                    return self._import(request, lines, is_inviting=settings.SENDS_MAIL and any(invites))
                except ValidationError as error:
                    form.add_error(None if is_confirmed else "file", error)
        if is_confirmed:
            # The hidden field was forged or cut off. Its errors would not help: the file has to be chosen again.
            form = FileForm()
            self.message_user(request, "The upload was incomplete. Upload the file again.", messages.ERROR)
        return self._render(request, form=form)

    def _preview(self, request: HttpRequest, text: str, lines: tablib.Dataset) -> HttpResponse:
        principal = get_principal(request)
        result = transactions.run_in_transaction(lambda: UserResource(principal).import_users(lines, dry_run=True))
        if result.invalid_rows:
            return self._render_errors(request, result, len(lines))
        preview = [dict(zip(lines.headers, line, strict=True)) for line in lines[:MAX_PREVIEW_LINES]]
        total = len(lines)
        return self._render(
            request,
            confirm_form=ConfirmForm.from_text(text),
            total=total,
            preview=preview,
            more=max(0, total - MAX_PREVIEW_LINES),
            sends_mail=settings.SENDS_MAIL,
        )

    def _import(self, request: HttpRequest, lines: tablib.Dataset, *, is_inviting: bool) -> HttpResponse:
        principal = get_principal(request)

        def import_and_log() -> Result:
            result = UserResource(principal).import_users(lines, dry_run=False)
            if not result.invalid_rows:
                users = [row.instance for row in result.valid_rows()]
                services.record_creations([user.pk for user in users])
                LogEntry.objects.log_actions(principal.user.pk, users, ADDITION, "Imported.")
                ids = [user.pk for user in users] if is_inviting else []
                for user in filter(may_invite, User.objects.filter(pk__in=ids).order_by("pk")):
                    invite(user)
            return result

        result = transactions.run_in_transaction(import_and_log)
        if result.invalid_rows:
            return self._render_errors(request, result, len(lines))
        self.message_user(request, f"Imported {len(lines):,} users.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:users_user_changelist"))

    def _render_errors(self, request: HttpRequest, result: Result, total: int) -> HttpResponse:
        errors, invalid = list_errors(result), len(result.invalid_rows)
        return self._render(request, form=FileForm(), errors=errors, invalid=invalid, total=total)

    def _render(self, request: HttpRequest, **context: object) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "title": "Import users"}
        return TemplateResponse(request, "admin/users/user/import.html", shared | context)
