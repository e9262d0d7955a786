from datetime import UTC, datetime

from config.api.representation.fields import CharField
from config.api.representation.serializers import ResourceSerializer
from posts.models import COMMENTS_IN_LIST, COMMENTS_OF_ONE, Comment, Post


class CommentSerializer(ResourceSerializer):
    example = {
        "id": 5,
        "post_id": 17,
        "user_id": 42,
        "text": "Welcome!",
        "created_at": datetime(2026, 12, 1, 9, 45, tzinfo=UTC),
        "updated_at": datetime(2026, 12, 1, 9, 45, tzinfo=UTC),
    }
    text = CharField(max_length=5_000, lines=True, help_text="The text of the comment.")

    class Meta:
        model = Comment
        fields = ("id", "post_id", "user_id", "text", "created_at", "updated_at")
        read_only_fields = ("post_id", "user_id")


class PostSerializer(ResourceSerializer):
    example = {
        "id": 17,
        "user_id": 42,
        "title": "Hello",
        "body": "First line\nSecond line",
        "first_comments": [],
        "comments_count": 0,
        "created_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
        "updated_at": datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
    }
    read_only_hints = {
        "comments": f"Lists show the first {COMMENTS_IN_LIST} comments of a post. "
        f"To send a post back, fetch it by its id: that shows {COMMENTS_OF_ONE}."
    }
    body = CharField(
        max_length=20_000,
        lines=True,
        required=False,
        allow_blank=True,
        help_text="The text of the post. Default: empty.",
    )
    comments = CommentSerializer(source="first_comments", many=True, read_only=True)

    class Meta:
        model = Post
        fields = ("id", "user_id", "title", "body", "comments", "comments_count", "created_at", "updated_at")
        read_only_fields = ("user_id", "comments_count")
        extra_kwargs = {"title": {"help_text": "The title of the post."}}
