"""Users out of a file: each line becomes one by the rules of the API, and all of them do, or none."""

from __future__ import annotations

import csv
import io
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Any, cast

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
from users.models import User
from users.serializers import UserSerializer

REQUIRED = ("name", "email")
COLUMNS = (*REQUIRED, "role", "status")
# What an export has beside them, and the service gives itself.
GIVEN = ("id", "created_at", "updated_at")
# Each line costs three milliseconds or more, in the one thread of a worker, and twice: looked at, and confirmed.
MOST_LINES = 1_000
MOST_BYTES = 512 * 1024
_LINE = "line"


class ImportedUsers(Resource):
    """Makes a user of each line, for an administrator that signed in with the password."""

    class Meta:
        skip_diff = True
        instance_loader_class = BaseInstanceLoader
        import_id_fields: tuple[str, ...] = ()

    def __init__(self, principal: Principal) -> None:
        super().__init__()
        self.context = {"principal": principal, "version": settings.API_VERSIONS[-1]}

    def get_or_init_instance(self, instance_loader: Any, row: Any) -> tuple[User, bool]:
        return User(), True

    def import_instance(self, instance: User, row: Any, **options: Any) -> None:
        # An empty cell is a value that was not given.
        given = {name: row[name] for name in COLUMNS if row.get(name)}
        self.checked = UserSerializer(data=given, context=self.context)
        if not self.checked.is_valid():
            raise ValidationError({name: list(map(str, problems)) for name, problems in self.checked.errors.items()})

    def save_instance(self, instance: User, is_create: bool, row: Any, **options: Any) -> None:
        try:
            made = self.checked.save()
        except DomainError as error:
            raise ValidationError({detail.field: [detail.message] for detail in error.details}) from None
        instance.pk, instance.name, instance.email = made.pk, made.name, made.email

    def get_diff_headers(self) -> list[str]:
        """What is kept of a line that is wrong."""
        return [_LINE]

    def run(self, lines: tablib.Dataset, *, dry_run: bool) -> Result:
        """Makes the users, none of them in a dry run or when a line is wrong.

        Raises:
            Exception: what is no fault of the file, such as a deadlock.
        """
        # The library's own transactions have a savepoint for each line beside that of the service.
        with transaction.atomic():
            result = self.import_data(lines, use_transactions=False, retain_instance_in_row_result=True)
            for failed in result.error_rows:
                raise failed.errors[0].error
            transaction.set_rollback(dry_run or bool(result.invalid_rows))
        return result


def problems(result: Result) -> list[tuple[int, str]]:
    """What is wrong, with the number of the line in the file."""
    return [
        (row.values[0], f"{field}: {message}")
        for row in result.invalid_rows
        for field, messages in row.error_dict.items()
        for message in messages
    ]


def read(text: str) -> tablib.Dataset:
    """The lines of a CSV file with a head, and with their numbers.

    Raises:
        ValidationError: the file as a whole cannot be read.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip().lower() for name in next(reader, [])]
        _check_head(head)
        lines = tablib.Dataset(headers=[_LINE, *head])
        for cells in reader:
            if len(cells) not in {0, len(head)}:
                raise ValidationError(f"Line {reader.line_num}: {len(cells)} cells below {len(head)} column names.")
            if cells:
                lines.append([reader.line_num, *cells])
            if len(lines) > MOST_LINES:
                raise ValidationError(f"The file has more than {MOST_LINES:,} lines: divide it.")
    except csv.Error as error:
        raise ValidationError(f"Line {reader.line_num}: this is no CSV: {error}.") from None
    if not lines:
        raise ValidationError("The file has no line below the column names.")
    return lines


def _check_head(head: list[str]) -> None:
    missing = [name for name in REQUIRED if name not in head]
    unknown = [name for name in head if name not in {*COLUMNS, *GIVEN}]
    if missing:
        raise ValidationError(f"The first line names the columns, with commas between; missing: {_list(missing)}.")
    if unknown:
        raise ValidationError(f"Unknown columns: {_list(unknown)}. Known: {_list(COLUMNS)}.")
    if len(set(head)) < len(head):
        raise ValidationError("A column stands twice in the first line.")


def _list(names: Any) -> str:
    return ", ".join(name[:50] or "(empty)" for name in list(names)[:10])


class FileForm(forms.Form):
    file = forms.FileField(
        label="CSV file",
        help_text=f"UTF-8, with the column names {_list(REQUIRED)} and perhaps role and status in the first line; "
        f"up to {MOST_LINES:,} lines. The users get no password: they are given one here, or by nobody.",
    )

    def clean_file(self) -> str:
        file: UploadedFile = self.cleaned_data["file"]
        if file.size is None or file.size > MOST_BYTES:
            raise ValidationError(f"The file is larger than {MOST_BYTES // 1024} KiB: divide it.")
        try:
            # Spreadsheets begin a file with a byte order mark.
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValidationError("The file is not UTF-8; save it as CSV UTF-8.") from None


class ConfirmForm(forms.Form):
    """Carries what was looked at to where it is confirmed, and is checked as anew.

    So no copy of it lies on a disk or in a table, to be found by others or to be removed one day; and it makes no
    difference which worker, on which machine, is asked.
    """

    content = forms.CharField(widget=forms.HiddenInput, strip=False)

    def clean_content(self) -> str:
        try:
            return urlsafe_b64decode(self.cleaned_data["content"]).decode()
        except (NotBase64, ValueError):
            raise ValidationError("Choose the file again.") from None

    @classmethod
    def of(cls, text: str) -> ConfirmForm:
        return cls(initial={"content": urlsafe_b64encode(text.encode()).decode()})


SHOWN = 20


class Imported(ServiceAdmin):
    """The page on which a file is chosen, looked at and confirmed."""

    def get_urls(self) -> list[URLPattern]:
        return [self.build_url_pattern("import", self.import_view), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        context = {"has_import_permission": self.has_add_permission(request)}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def import_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        confirmed = "content" in request.POST
        form: forms.Form = FileForm()
        if request.method == "POST":
            form = ConfirmForm(request.POST) if confirmed else FileForm(None, request.FILES)
            if form.is_valid():
                (text,) = form.cleaned_data.values()
                try:
                    return self._import(request, text, read(text), confirmed=confirmed)
                except ValidationError as error:
                    form.add_error(None if confirmed else "file", error)
        if confirmed:
            # What it carried was made by hand, or cut on its way.
            form = FileForm()
            self.message_user(request, "The file did not arrive whole: choose it again.", messages.ERROR)
        return self._page(request, form=form)

    def _import(self, request: HttpRequest, text: str, lines: tablib.Dataset, *, confirmed: bool) -> HttpResponse:
        def run() -> Result:
            result = ImportedUsers(get_principal(request)).run(lines, dry_run=not confirmed)
            if confirmed and not result.invalid_rows:
                made = [row.instance for row in result.valid_rows()]
                LogEntry.objects.log_actions(cast(int, request.user.pk), made, ADDITION, "Imported.")
            return result

        result = transactions.run(run)
        if result.invalid_rows:
            wrong = problems(result)
            return self._page(
                request, form=FileForm(), problems=wrong, wrong=len(result.invalid_rows), total=len(lines)
            )
        if confirmed:
            self.message_user(request, f"Imported {len(lines):,} users.", messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:users_user_changelist"))
        total = len(lines)
        shown = [dict(zip(lines.headers, line, strict=True)) for line in lines[:SHOWN]]
        return self._page(request, confirm=ConfirmForm.of(text), total=total, shown=shown, more=max(0, total - SHOWN))

    def _page(self, request: HttpRequest, **context: Any) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "title": "Import users"}
        return TemplateResponse(request, "admin/users/user/import.html", shared | context)
