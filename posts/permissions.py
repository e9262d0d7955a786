from config.api.permissions import ResourcePermission
from config.api.principal import Principal
from posts.models import Comment, Post
from users.permissions import is_self_or_administrator


class AuthorPermission(ResourcePermission):
    """Everybody reads; authors and administrators change."""

    refusal = "Only the author or an administrator can do this."

    @staticmethod
    def may_change(principal: Principal, row: Post | Comment) -> bool:
        return is_self_or_administrator(principal, row.user_id)
