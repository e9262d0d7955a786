from django.contrib import admin

from config.admin import ServiceAdmin
from posts.models import Comment, Post


@admin.register(Post)
class PostAdmin(ServiceAdmin):
    list_display = ("id", "user_id", "title", "comments_count", "created_at")
    search_fields = ("=id", "title__startswith")
    readonly_fields = ("user",)


@admin.register(Comment)
class CommentAdmin(ServiceAdmin):
    list_display = ("id", "post_id", "user_id", "text", "created_at")
    search_fields = ("=id", "=post__id")
    readonly_fields = ("post", "user")
