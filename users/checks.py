"""System checks of users, for `manage.py doctor` and `manage.py check --database default`."""

from collections.abc import Sequence

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DatabaseError, connection

from users.models import Folded

# While the unique index is in place, no two emails are the same.
_IS_UNIQUE = """
SELECT to_regclass('users_user') IS NULL OR EXISTS (
    SELECT FROM pg_index WHERE indexrelid = to_regclass('users_email_unique') AND indisvalid
    AND pg_get_indexdef(indexrelid) ILIKE '%NFKC%'
)
"""
_FIND_SAME = f"""
SELECT array_agg(id ORDER BY id) FROM users_user WHERE removed_at IS NULL
GROUP BY {Folded.template % {"expressions": "email"}} HAVING count(*) > 1 ORDER BY 1
"""  # noqa: S608 - of constants


@register(Tags.database)
def check_emails(databases: Sequence[str] | None = None, **options: object) -> list[CheckMessage]:
    """Lists the users whose emails are the same, where the unique index is missing that would refuse them."""
    if not databases:
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute(_IS_UNIQUE)
            if cursor.fetchone() == (True,):
                return []
            cursor.execute(_FIND_SAME)
            groups = [ids for (ids,) in cursor.fetchall()]
    except DatabaseError:
        # config.checks tells of it.
        return []
    hint = "Change the email of all but one of them."
    return [
        Error(f"Users {', '.join(map(str, ids))} have the same email.", hint=hint, id="users.E001") for ids in groups
    ]
