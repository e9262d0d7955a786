from typing import Any

from django.db.models import QuerySet

from config.api.representation.links import Link
from config.api.viewsets import ResourceViewSet, id_of
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
    http_method_names = ["get", "put", "patch", "delete", "head", "options"]
    links = (
        Link("self", "/posts/{0.id}", "posts:read"),
        Link("comments", "/posts/{0.id}/comments", "posts:read"),
        Link("user", "/users/{0.user_id}", "users:read", when=may_read_owner, reads="user"),
        Link("update", "/posts/{0.id}", "posts:write", "PUT", AuthorPermission.may_change),
        Link("delete", "/posts/{0.id}", "posts:write", "DELETE", AuthorPermission.may_change),
    )

    def showing(self, rows: Any, names: frozenset[str], *, single: bool) -> Any:
        if "comments" not in names:
            return rows
        return rows.with_comments(COMMENTS_OF_ONE if single else COMMENTS_IN_LIST)


class UserPostViewSet(PostViewSet):
    """The posts of one user, of any user that is there."""

    http_method_names = ["get", "post", "head", "options"]
    parent_field = "user_id"
    idempotency = KeyPolicy.HONOURED

    def parents(self) -> QuerySet[User]:
        return User.objects.all()

    def check_parent(self) -> None:
        super().check_parent()
        if self.request.method == "POST" and not is_self_or_administrator(self.principal, self.parent_id):
            raise forbidden("Only an administrator may post for another user.", "user_id")

    def perform_create(self, serializer: PostSerializer) -> Any:
        if not User.objects.hold(self.parent_id):
            raise not_found()
        return serializer.save(user_id=self.parent_id)


class CommentViewSet(ResourceViewSet):
    """Single comments."""

    queryset = Comment.objects.all()
    serializer_class = CommentSerializer
    permission_classes = [AuthorPermission]
    scope = "posts"
    sortable = ("id", "created_at", "updated_at")
    links = (
        Link("self", "/comments/{0.id}", "posts:read"),
        Link("post", "/posts/{0.post_id}", "posts:read"),
        Link("user", "/users/{0.user_id}", "users:read", when=may_read_owner, reads="user"),
    )
    http_method_names = ["get", "put", "patch", "delete", "head", "options"]

    def get_object(self, *, lock: bool = False) -> Comment:
        if lock:
            Comment.objects.filter(pk=id_of(self.kwargs["id"])).lock_posts()
        return super().get_object(lock=lock)


class PostCommentViewSet(CommentViewSet):
    """The comments on one post."""

    http_method_names = ["get", "post", "head", "options"]
    parent_field = "post_id"
    idempotency = KeyPolicy.HONOURED

    def parents(self) -> QuerySet[Post]:
        return Post.objects.all()

    def perform_create(self, serializer: CommentSerializer) -> Any:
        # The author first, then the post, whose lock the counting trigger takes anyway: both are there until the end.
        self.principal.hold()
        post = Post.objects.select_for_update(no_key=True).filter(pk=self.parent_id).first()
        if post is None:
            raise not_found()
        return serializer.save(post_id=post.pk, user_id=self.principal.user.pk)
