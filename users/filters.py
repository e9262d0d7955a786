import django_filters

from config.api.listing.filters import StrictFilterSet
from users.models import Role, Status, UserQuerySet


def _build_choice_filter(choices: type[Role] | type[Status]) -> django_filters.ChoiceFilter:
    message = f"Must be one of: {', '.join(choices.values)}."
    return django_filters.ChoiceFilter(choices=choices.choices, error_messages={"invalid_choice": message})


class UniqueFilter(django_filters.CharFilter):
    is_small = True


class UserFilterSet(StrictFilterSet):
    status = _build_choice_filter(Status)
    role = _build_choice_filter(Role)
    email = UniqueFilter(
        method="with_email",
        strip=False,
        help_text="Returns only the user with this email address, ignoring case and Unicode normalization.",
    )
    external_id = UniqueFilter(strip=False)

    def with_email(self, rows: UserQuerySet, name: str, value: str) -> UserQuerySet:
        return rows.with_email(value)
