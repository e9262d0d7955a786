from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import pgtrigger
from django.conf import settings
from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.sql.compiler import SQLCompiler

from config.api.principal import Principal
from config.api.representation.text import validate_line, validate_lines
from config.models import ChangingResource, VisibleManager, keep_updated_at, track_words
from config.postgresql.events import track_events
from config.postgresql.row_counts import track_counts
from config.postgresql.visibility import PENDING, REMOVED

COMMENTS_OF_ONE = 20
COMMENTS_IN_LIST = 3


# The comments of removed users that are still to be erased. Nobody looks for them while there are no such users.
_HIDDEN_COMMENTS = f"""
CASE WHEN {PENDING} THEN (
    SELECT count(*) FROM posts_comment AS hidden WHERE hidden.post_id = {{post}}.id AND hidden.user_id IN {REMOVED}
) ELSE 0 END
"""  # noqa: S608 - of constants


_FIRST_COMMENTS = f"""
(SELECT json_agg(first ORDER BY first.id)::text FROM (
    SELECT * FROM posts_comment WHERE post_id = posts_post.id AND ({PENDING} AND user_id IN {REMOVED}) IS NOT TRUE
    ORDER BY id LIMIT %s
) AS first)
"""  # noqa: S608 - of constants


class _ShownColumn(models.BigIntegerField):
    """A column of a post that is read as it will be when the comments of removed users are erased.

    Attributes:
        sign: of what the erasure of a comment does to the column.
    """

    sign: ClassVar[str]

    def deconstruct(self) -> Any:
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, options

    def select_format(self, compiler: SQLCompiler, sql: str, params: Any) -> tuple[str, Any]:
        """Django's hook for what a query selects of a column."""
        post = sql.rpartition(".")[0] or "posts_post"
        return f"({sql} {self.sign} {_HIDDEN_COMMENTS.format(post=post)})", params


class _CommentsCount(_ShownColumn):
    sign = "-"


class _RowVersion(_ShownColumn):
    sign = "+"


class _Comments(models.Field):
    """The rows of a subquery as a JSON array, read as comments."""

    def from_db_value(self, value: str | None, expression: object, connection: BaseDatabaseWrapper) -> list[Comment]:
        columns = Comment._meta.concrete_fields
        names = [column.attname for column in columns]
        return [
            Comment.from_db(connection.alias, names, [column.to_python(row[column.column]) for column in columns])
            for row in json.loads(value or "[]")
        ]


class _PublicQuerySet(models.QuerySet):
    """Rows that everybody may read. Their deletion takes the locks of `lock` first."""

    lock: Callable[[], None]

    def visible_to(self, principal: Principal) -> Self:
        return self

    @transaction.atomic
    def delete(self) -> tuple[int, dict[str, int]]:
        self.lock()
        return super().delete()

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]


class PostQuerySet(_PublicQuerySet):
    def with_comments(self, count: int) -> PostQuerySet:
        """The posts with the first `count` comments of each, oldest first, from one look at the database.

        The walk over the index of each post's comments stops after `count` rows.
        """
        posts: PostQuerySet = self
        if self.query.is_sliced:
            # The page first: PostgreSQL would collect the comments of every post that its OFFSET skips, too.
            posts = Post.objects.filter(pk__in=self.values("pk")).order_by(*self.query.order_by)
            # The columns that `only` and `defer` chose.
            posts.query.deferred_loading = self.query.deferred_loading
        first = RawSQL(_FIRST_COMMENTS, [count], output_field=_Comments())  # noqa: S611 - of constants
        return posts.annotate(first_comments=first)  # takes the place of the property

    def lock(self) -> None:
        """Locks the posts before their comments go: one that is just being written waits, and finds its post gone."""
        list(self.order_by("pk").select_for_update().values_list("pk"))


# In the place of Resource's. Whoever writes a whole row, as it was read, does not change what triggers keep.
_COUNT_VERSION = pgtrigger.Trigger(
    name="count_row_version",
    when=pgtrigger.Before,
    operation=pgtrigger.Update,
    func="""
        IF pg_trigger_depth() = 1 THEN
            NEW.comments_count = OLD.comments_count;
        END IF;
        NEW.row_version = OLD.row_version + greatest(1, OLD.comments_count - NEW.comments_count);
        RETURN NEW;
    """,
)


@track_events("post", "title", "body", is_removed=True)
@track_counts()
@track_words("title", "body")
class Post(ChangingResource):
    # CASCADE: posts go when their user is removed.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="posts", db_index=False)
    archived = ("id", "title", "body", "created_at", "updated_at")
    title = models.CharField(max_length=200, db_collation="C", validators=[validate_line])
    body = models.CharField(max_length=20_000, default="", blank=True, validators=[validate_lines])
    # Kept by triggers on the comments.
    comments_count = _CommentsCount(db_default=0, editable=False)
    # Moves by one for each comment that goes (_COUNT_VERSION): a comment that is hidden first, and erased later, moves
    # the version at once, and not again.
    row_version = _RowVersion(db_default=1, editable=False)

    objects = VisibleManager.from_queryset(PostQuerySet)()

    class Meta(ChangingResource.Meta):
        indexes = [
            models.Index(fields=["user", "id"], name="posts_user"),
            # With the user: a walk over thousands of keys asks the index, and not the table, whose each row is.
            models.Index(fields=["title", "id"], include=["user"], name="posts_title"),
            models.Index(fields=["created_at", "id"], include=["user"], name="posts_created_at"),
            models.Index(fields=["updated_at", "id"], include=["user"], name="posts_updated_at"),
            # One user's rows have an index in each order: an owner of a million rows is read in no other way at once.
            models.Index(fields=["user", "title", "id"], name="posts_user_title"),
            models.Index(fields=["user", "created_at", "id"], name="posts_user_created_at"),
            models.Index(fields=["user", "updated_at", "id"], name="posts_user_updated_at"),
        ]
        constraints = [models.CheckConstraint(condition=~Q(title=""), name="posts_title_given")]
        triggers = [_COUNT_VERSION, keep_updated_at("title", "body")]

    def __str__(self) -> str:
        # The admin's log keeps this text: it must not quote a user's text.
        return f"post {self.pk}"

    @cached_property
    def first_comments(self) -> list[Comment]:
        """The first comments, oldest first, of a post that was not read `with_comments` since it was just written."""
        return list(self.comments.all()[:COMMENTS_OF_ONE])


class CommentQuerySet(_PublicQuerySet):
    def lock(self) -> None:
        """Locks the posts of these comments, which the counting trigger would do after the comments themselves.

        Whoever writes a comment takes these locks first: two who took them in different orders would wait for
        each other.
        """
        posts = Post.objects.including_erased().filter(comments__in=self).order_by("pk")
        list(posts.select_for_update(of=("self",), no_key=True).values_list("pk"))


_ARRIVED = "SELECT post_id, 1 AS change FROM arrived"
_GONE = "SELECT post_id, -1 AS change FROM gone"


def _count_into_posts(name: str, operation: pgtrigger.Operation, changes: str, **tables: str) -> pgtrigger.Trigger:
    """Counts a statement's comments into their posts, and so moves the posts' versions: a post shows its comments.

    The posts are locked in the order of their ids first: two statements that touch the same posts must not meet
    each other's locks in different orders.

    Args:
        changes: selects `post_id` and what each comment changes in the count of its post, from the `tables`.
        tables: the names of the statement's rows as they were (`old`) and as they are (`new`).
    """
    return pgtrigger.Trigger(
        name=name,
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=pgtrigger.Referencing(**tables),
        func=f"""
            PERFORM 1 FROM posts_post WHERE id IN (SELECT post_id FROM ({changes}) AS changes)
            ORDER BY id FOR NO KEY UPDATE;
            UPDATE posts_post SET comments_count = comments_count + counted.change
            FROM (SELECT post_id, sum(change) AS change FROM ({changes}) AS changes GROUP BY post_id) AS counted
            WHERE posts_post.id = counted.post_id;
            RETURN NULL;
        """,  # noqa: S608 - made of constants
    )


@track_events("comment", "text", is_removed=True)
class Comment(ChangingResource):
    # CASCADE: comments go with their post, and when their author is removed.
    post = models.ForeignKey(Post, on_delete=models.CASCADE, related_name="comments", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="comments", db_index=False
    )
    archived = ("id", "post_id", "text", "created_at", "updated_at")
    text = models.CharField(max_length=5_000, validators=[validate_lines])

    objects = VisibleManager.from_queryset(CommentQuerySet)()

    class Meta(ChangingResource.Meta):
        indexes = [
            models.Index(fields=["post", "id"], include=["user"], name="comments_post"),
            models.Index(fields=["post", "created_at", "id"], include=["user"], name="comments_post_created_at"),
            models.Index(fields=["post", "updated_at", "id"], include=["user"], name="comments_post_updated_at"),
            models.Index(fields=["user", "id"], name="comments_user"),
        ]
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="comments_text_given")]
        triggers = [
            *ChangingResource.Meta.triggers,
            keep_updated_at("text"),
            _count_into_posts("count_new_comments", pgtrigger.Insert, _ARRIVED, new="arrived"),
            _count_into_posts("count_gone_comments", pgtrigger.Delete, _GONE, old="gone"),
            _count_into_posts(
                "count_changed_comments",
                pgtrigger.Update,
                f"{_ARRIVED} UNION ALL {_GONE}",
                new="arrived",
                old="gone",
            ),
        ]

    def __str__(self) -> str:
        return f"comment {self.pk}"
