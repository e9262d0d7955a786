"""What belongs to a user, for the user's own page: the change list of each model, with the latest rows."""

from copy import copy
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.templatetags.admin_list import result_headers, results
from django.db.models import IntegerField, Model, Subquery
from django.http import HttpRequest, QueryDict

from config.admin import changelist
from config.admin.base import ServiceAdmin

LATEST = 5


class _CountRows(Subquery):
    """The number of rows of a subquery."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) _counted)"
    output_field = IntegerField()


class _LatestList(changelist.ChangeList):
    """A change list of the first rows, which are not counted."""

    def get_results(self, request: HttpRequest) -> None:
        self.formset, self.result_list = None, self.queryset[:LATEST]


def fetch_related_lists(site: AdminSite, request: HttpRequest, user: Model) -> list[dict[str, Any]]:
    """Reads what belongs to a user, of the apps first: by one statement all totals, and by one each list.

    Args:
        site: the admin whose models are asked.
        request: of the user who looks; what this user may not view is left out.
        user: whose page it is.
    """
    pages = [page for page in site._registry.values() if isinstance(page, ServiceAdmin) and page.user_field]
    pages.sort(key=lambda page: page.opts.app_label == "config")
    lists = [_build_list(page, request, user) for page in pages if page.has_view_related_permission(request, user)]
    limited = [cl.queryset.order_by().values("pk")[: changelist.MAX_COUNT + 1] for cl in lists]
    counts = type(user)._base_manager.filter(pk=user.pk).values_list(*map(_CountRows, limited)).get()
    return [_describe(cl, count) for cl, count in zip(lists, counts, strict=True)]


def _build_list(page: ServiceAdmin, request: HttpRequest, user: Model) -> Any:
    filtered: Any = copy(request)
    filtered.GET = QueryDict(f"{page.user_field}__id__exact={user.pk}")
    filtered.changelist_class = _LatestList
    return page.get_changelist_instance(filtered)


def _describe(cl: Any, count: int) -> dict[str, Any]:
    shown = [index for index, name in enumerate(cl.list_display) if name not in {"action_checkbox", "user_link"}]
    headers = list(result_headers(cl))
    return {
        "cl": cl,
        "count": min(count, changelist.MAX_COUNT),
        "has_more": count > changelist.MAX_COUNT,
        "columns": [headers[index]["text"] for index in shown],
        "rows": [[row[index] for index in shown] for row in results(cl)],
    }
