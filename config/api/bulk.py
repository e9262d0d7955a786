"""Many new rows by one POST: NDJSON, a resource a line, by the rules of single ones and in one transaction.

A viewset has the mixin. What it does to a single row by `get_address_values` holds for the rows of lines, too. Its
serializer adds them by `create_many`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import Model
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.settings import api_settings

from config.api.exceptions import get_problem
from config.api.representation import envelope
from config.api.representation.serializers import ResourceSerializer
from config.api.requests import NDJSONParser, get_media_type
from config.api.views import ConventionsMixin
from config.api.writing.idempotency import KeyPolicy, parse_key
from config.http.errors import Detail, DomainError, ErrorCode, invalid
from config.http.json import JSONObject, RefusedLine, name_line
from config.http.media_types import NDJSON

PARTIAL = "partial"
MULTI_STATUS = 207

# The outcome of a line, or of its values: a refusal, or the row.
Outcome = Model | DomainError
Line = JSONObject | RefusedLine


class BulkMixin(ConventionsMixin):
    """What a viewset of resources does with lines.

    Attributes:
        is_bulk: whether this request has lines.
        is_partial: whether lines are added although others are refused.
    """

    bulk: ClassVar[bool] = True
    parser_classes = (*api_settings.DEFAULT_PARSER_CLASSES, NDJSONParser)
    is_bulk = False
    is_partial = False

    def parse_write_parameters(self: Any) -> None:
        """Finds out whether the request has lines, and reads the parameter of such a request."""
        super().parse_write_parameters()
        takes_lines = self.request.method in NDJSONParser.methods and self.parameters.takes_later
        if not takes_lines or get_media_type(self.request) != NDJSON:
            return
        if self.principal is None:
            # An open sign-up is for one person at a time.
            raise DomainError(ErrorCode.UNAUTHENTICATED, "Creating several resources at once requires a credential.")
        self.is_bulk = True
        self.is_partial = self.parameters.flag(PARTIAL, default=False)

    def create_many(self: Any, lines: Sequence[Line]) -> Response:
        """The response to lines: 201 if all are added, 207 with the result of each if some may be refused.

        Raises:
            DomainError: FORBIDDEN or VALIDATION_ERROR that names every problem of every line; nothing is added then.
        """

        def add() -> tuple[Response, Sequence[Model]]:
            outcomes = self.add_lines(lines)
            rows = [outcome for outcome in outcomes if not isinstance(outcome, DomainError)]
            return self.respond_many(outcomes, self.represent(self.read_related(rows))), rows

        return self.run_create(parse_key(self.request, KeyPolicy.HONOURED), add)

    def add_lines(self: Any, lines: Sequence[Line]) -> list[Outcome]:
        """The outcome of each line: its row, which is added, or the reason why it is not."""
        serializer = self.get_line_serializer()
        checked = _check_lines(serializer, lines)
        if not self.is_partial and any(isinstance(each, DomainError) for each in checked):
            raise _refuse_all(checked, serializer.find_conflicts(lines))
        many = [each for each in checked if not isinstance(each, DomainError)]
        address_values = self.get_address_values() if many else {}
        made = iter(serializer.create_many([{**each, **address_values} for each in many]) if many else ())
        outcomes = [each if isinstance(each, DomainError) else next(made) for each in checked]
        if not self.is_partial and any(isinstance(each, DomainError) for each in outcomes):
            raise _refuse_all(outcomes, [()] * len(outcomes))
        return outcomes

    def read_related(self: Any, rows: Sequence[Model]) -> Sequence[Model]:
        """New rows with the related values that they show."""
        found = self.queryset.filter(pk__in=[row.pk for row in rows])
        related = self.with_related(found, self.field_names, single=True)
        if related is found or not rows:
            return rows
        by_id = {row.pk: row for row in related}
        return [by_id[row.pk] for row in rows]

    def respond_many(self, outcomes: Sequence[Outcome], representations: Sequence[object]) -> Response:
        """The response with the result of each line."""
        made = iter(representations)
        data = [
            {"line": number, "status": outcome.status, "error": envelope.error(outcome)["error"]}
            if isinstance(outcome, DomainError)
            else {"line": number, "status": 201, "data": next(made)}
            for number, outcome in enumerate(outcomes, start=1)
        ]
        body = envelope.lines(data, created=len(representations)) if self.enveloped else data
        return self.build_response(body, MULTI_STATUS if self.is_partial else 201)


def _check_lines(serializer: ResourceSerializer, lines: Sequence[Line]) -> list[Mapping[str, Any] | DomainError]:
    """The values of each line, or all that is wrong with it."""
    for name, field in serializer.fields.items():
        if prepare := getattr(field, "prepare", None):
            prepare([line[name] for line in lines if not isinstance(line, RefusedLine) and name in line])
    room = dict(serializer.max_lines_with)
    return [line.problem if isinstance(line, RefusedLine) else _check_line(serializer, line, room) for line in lines]


def _check_line(
    serializer: ResourceSerializer, line: JSONObject, room: dict[str, int]
) -> Mapping[str, Any] | DomainError:
    """The values of a line, or all that is wrong with it.

    Args:
        room: how many further lines may have a value for the fields that take long.
    """
    excess = {}
    for name in room.keys() & line.keys():
        room[name] -= 1
        if room[name] < 0:
            most = serializer.max_lines_with[name]
            excess[name] = f"Only {most} lines of a request can set this field. Send the rest in another request."
    if excess:
        line = {name: value for name, value in line.items() if name not in excess}
    serializer.initial_data = line
    try:
        values: Mapping[str, Any] = serializer.run_validation(line)
    except (ValidationError, DomainError) as error:
        problem = get_problem(error)
        if excess and problem.code is ErrorCode.VALIDATION_ERROR:
            problem.details += [Detail(*each) for each in excess.items()]
        return problem
    return invalid(*(Detail(*each) for each in excess.items())) if excess else values


def _refuse_all(outcomes: Sequence[object], conflicts: Sequence[Sequence[Detail]]) -> DomainError:
    """The refusal of all lines, with what is wrong with any of them.

    As in a single write, what the caller may not set is refused before any other value is looked at.

    Args:
        conflicts: of each line with existing rows.
    """
    refused = {index: outcome for index, outcome in enumerate(outcomes) if isinstance(outcome, DomainError)}
    forbidden = {index: each for index, each in refused.items() if each.code is ErrorCode.FORBIDDEN}
    told: dict[int, list[Detail]] = {}
    for index, problem in (forbidden or refused).items():
        told[index] = problem.details or [Detail("", problem.message)]
    for index, details in enumerate(() if forbidden else conflicts):
        # An invalid email has no conflict, and is reported once.
        known = {detail.field for detail in told.get(index, ())}
        if others := [detail for detail in details if detail.field not in known]:
            told[index] = [*told.get(index, ()), *others]
    details = [
        Detail(name_line(index + 1, detail.field), detail.message) for index in sorted(told) for detail in told[index]
    ]
    if forbidden:
        return DomainError(ErrorCode.FORBIDDEN, next(iter(forbidden.values())).message, details)
    return invalid(*details)
