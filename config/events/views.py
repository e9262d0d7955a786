"""The feed over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.included import Relation, fetch_related
from config.api.listing.filters import split_values
from config.api.listing.pagination import DEFAULT_LIMIT, MAX_LIMIT, ListPagination, parse_whole_number
from config.api.listing.query import INCLUDE
from config.api.permissions import require_scope
from config.api.representation.envelope import Link, build_address
from config.api.representation.fields import is_id
from config.api.views import ConventionsMixin
from config.events.feed import Page, Question, read_page
from config.events.reference import MEMBERS, PARAMETERS
from config.events.representation import FIELDS, open_place, represent, seal_place
from config.events.serializers import EventSerializer
from config.http.errors import ErrorCode, forbidden
from config.http.url_map import find_view
from config.models import Event
from config.models.events import ACTIONS, SCOPES, TYPES

RESOURCE = "resource"
NOW = "now"


class EventsView(ConventionsMixin):
    """What happened to the users and resources that the caller may see.

    Attributes:
        question: which events the request asks for.
        included: whether it asks for the resources, too.
    """

    texts = {
        "get": "List events.\n\n"
        "Returns a page of the changes to users, orders, payments, posts and comments, oldest first. Every page has a "
        "`nextCursor`, even the last one: continue from it to get each event exactly once. The credential needs the "
        "read scope of each type in `type` (such as `posts:read` for `post.created`). Without `type`, you get the "
        "types for which it has the read scope."
    }
    own_errors = {"GET": (ErrorCode.INVALID_CURSOR, ErrorCode.CURSOR_EXPIRED, ErrorCode.FORBIDDEN)}
    own_parameters = PARAMETERS
    own_members = MEMBERS
    question: Question
    included = False

    def required_scope(self, method: str) -> str:
        return "events:read"

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        self.chosen_fields = self.parameters.parse_fields(FIELDS)
        self.included = self._parse_include()
        self.question = self._parse_question()
        self.parameters.check()

    def _parse_question(self) -> Question:
        parameters = self.parameters
        for name in ("page", "offset", "sort", "order"):
            if name in parameters.query:
                parameters.know(name)
                parameters.refuse(name, "Events are read in their order, and by cursor alone. Omit this parameter.")
        limit = min(parse_whole_number(parameters, "limit", DEFAULT_LIMIT, 1), MAX_LIMIT)
        cursor = parameters.get("cursor", opaque=True)
        types, user_id = self._parse_types(), self._parse_user_id()
        place = open_place(cursor) if cursor and cursor != NOW and not parameters.problems else None
        return Question(place, limit, cursor == NOW, types, user_id)

    def _parse_types(self) -> Sequence[str] | None:
        value = self.parameters.get("type")
        types = None if value is None else split_values(value)
        if unknown := [name for name in types or () if name not in TYPES]:
            shown = ", ".join(unknown) or "an empty value"
            self.parameters.refuse("type", f"Unknown: {shown}. Available: {', '.join(TYPES)}.")
            return None
        for name in types or () if self.principal else ():
            require_scope(self.principal, SCOPES[name])
        return types

    def _parse_user_id(self) -> int | None:
        value = self.parameters.get("user_id")
        if value is None or self.principal is None:
            return None
        if not is_id(value):
            self.parameters.refuse("user_id", "Must be the id of a user.")
            return None
        user = self.principal.user
        if not user.is_staff and int(value) != user.pk:
            raise forbidden("You can filter by your own id alone.", "user_id")
        return int(value)

    def _parse_include(self) -> bool:
        value = self.parameters.get(INCLUDE)
        if value not in {None, RESOURCE}:
            self.parameters.refuse(INCLUDE, f"Must be {RESOURCE}.")
        if value and not self.enveloped:
            self.parameters.refuse(INCLUDE, "Requires the envelope. Omit envelope=false.")
        return value is not None

    @extend_schema(responses=EventSerializer(many=True))
    def get(self, request: Request, **kwargs: str) -> Response:
        page = read_page(self.principal, self.question)
        build = partial(build_address, request)
        shown = [represent(event, page.following.epoch, self.principal, build) for event in page.events]
        if self.chosen_fields:
            shown = [{name: each[name] for name in FIELDS if name in self.chosen_fields} for each in shown]
        response = self._build_paginator(page).get_paginated_response(shown)
        if self.included:
            response.data["included"] = {RESOURCE: {"data": self._include(page.events)}}
        return response

    def _build_paginator(self, page: Page) -> ListPagination:
        paginator = ListPagination()
        paginator.view = self
        following = seal_place(page.following)
        paginator.meta = {"nextCursor": following, "hasMore": page.has_more}
        paginator.parameter, paginator.positions = "cursor", {"first": "", "next": following}
        return paginator

    def _include(self, events: Sequence[Event]) -> list[Any]:
        """The current resource of each event; null if it was deleted, or is no longer visible."""
        found: dict[tuple[str, int], Any] = {}
        for resource in ACTIONS:
            rows = [event for event in events if event.resource == resource]
            if rows:
                path = f"/{resource}s/{{0.resource_id}}"
                view: Any = find_view(f"/{resource}s/0")
                relation = Relation(Link(resource, path), "resource_id", view.cls, is_list=False)
                found |= {(resource, row["id"]): row for row in fetch_related(self, relation, rows)["data"]}
        return [found.get((event.resource, event.resource_id)) for event in events]
