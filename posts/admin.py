from django.contrib import admin
from django.template.defaultfilters import truncatechars

from config.admin.base import ServiceAdmin, link_to_key
from posts.models import Comment, Post


@admin.register(Post)
class PostAdmin(ServiceAdmin):
    list_display = ("id", "user_link", "title", "comments_count", "created_at")
    list_filter = ("created_at",)
    sortable_by = ("id", "title", "created_at")
    search_fields = ("id", "user", "title__startswith")
    search_help_text = "A post ID, a user ID, or the start of a title."
    export_fields = ("id", "user_id", "title", "body", "comments_count", "created_at", "updated_at")
    readonly_fields = ("user", "comments_count", "created_at", "updated_at")


@admin.register(Comment)
class CommentAdmin(ServiceAdmin):
    list_display = ("id", "post_link", "user_link", "beginning", "created_at")
    search_fields = ("id", "post", "user")
    search_help_text = "A comment ID, a post ID or a user ID."
    export_fields = ("id", "post_id", "user_id", "text", "created_at", "updated_at")
    readonly_fields = ("post", "user", "created_at", "updated_at")

    @admin.display(description="post")
    def post_link(self, obj: Comment) -> str:
        return link_to_key(Post, obj.post_id)

    @admin.display(description="text")
    def beginning(self, obj: Comment) -> str:
        return truncatechars(obj.text, 100)
