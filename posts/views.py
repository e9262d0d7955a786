from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from config.api.bulk import BulkMixin
from config.api.representation.envelope import Link
from config.api.viewsets import ResourceViewSet, parse_id
from config.api.writing.idempotency import KeyPolicy
from config.http.errors import forbidden, not_found
from posts.models import COMMENTS_IN_LIST, COMMENTS_OF_ONE, Comment, Post
from posts.permissions import AuthorPermission
from posts.serializers import CommentSerializer, PostSerializer
from users.models import User
from users.permissions import is_self_or_administrator, may_read_owner


class PostViewSet(ResourceViewSet):
    """Posts, which everybody reads."""

    queryset = Post.objects.all()
    serializer_class = PostSerializer
    permission_classes = [AuthorPermission]
    scope = "posts"
    sortable = ("id", "title", "created_at", "updated_at")
    max_body = 256 * 1024
    # Everybody sees everybody's.
    staff_filters = ()
    http_method_names = ["get", "put", "patch", "delete", "head", "options"]
    links = (
        Link("self", "/posts/{0.id}", "posts:read"),
        Link("comments", "/posts/{0.id}/comments", "posts:read"),
        Link("user", "/users/{0.user_id}", "users:read", when=may_read_owner, select_related="user"),
        Link("update", "/posts/{0.id}", "posts:write", "PUT", AuthorPermission.may_change),
        Link("delete", "/posts/{0.id}", "posts:write", "DELETE", AuthorPermission.may_change),
    )

    def lock_related(self) -> None:
        # Before the row is read: a statement that waits for its lock counts the comments hidden before the wait.
        post = Post.objects.filter(pk=parse_id(self.kwargs["id"]))
        list(post.select_for_update(no_key=self.action != "destroy").values_list("pk"))

    def with_related(self, queryset: Any, names: frozenset[str], *, single: bool) -> Any:
        if "comments" not in names:
            return queryset
        return queryset.with_comments(COMMENTS_OF_ONE if single else COMMENTS_IN_LIST)


class UserPostViewSet(BulkMixin, PostViewSet):
    """The posts of one user, of any user that is there."""

    http_method_names = ["get", "post", "head", "options"]
    parent_field = "user_id"
    idempotency = KeyPolicy.HONOURED

    def get_parents(self) -> QuerySet[User]:
        return User.objects.all()

    def check_parent(self) -> None:
        super().check_parent()
        if self.request.method == "POST" and not is_self_or_administrator(self.principal, self.parent_id):
            raise forbidden("Only an administrator can post for another user.", "user_id")

    def get_address_values(self) -> dict[str, object]:
        if not User.objects.lock_key_share(self.parent_id):
            raise not_found()
        return {"user_id": self.parent_id}


class CommentViewSet(ResourceViewSet):
    """Single comments."""

    queryset = Comment.objects.all()
    serializer_class = CommentSerializer
    permission_classes = [AuthorPermission]
    scope = "posts"
    sortable = ("id", "created_at", "updated_at")
    max_body = 64 * 1024
    links = (
        Link("self", "/comments/{0.id}", "posts:read"),
        Link("post", "/posts/{0.post_id}", "posts:read"),
        Link("user", "/users/{0.user_id}", "users:read", when=may_read_owner, select_related="user"),
    )
    http_method_names = ["get", "put", "patch", "delete", "head", "options"]

    def lock_related(self) -> None:
        Comment.objects.filter(pk=parse_id(self.kwargs["id"])).lock()


class PostCommentViewSet(CommentViewSet):
    """The comments on one post."""

    http_method_names = ["get", "post", "head", "options"]
    parent_field = "post_id"
    idempotency = KeyPolicy.HONOURED

    def get_parents(self) -> QuerySet[Post]:
        return Post.objects.all()

    def get_address_values(self) -> dict[str, object]:
        # After the author, whom `create` locked, the post, whose lock the counting trigger takes anyway.
        post = get_object_or_404(Post.objects.select_for_update(no_key=True), pk=self.parent_id)
        return {"post_id": post.pk, "user_id": self.principal.user.pk}
