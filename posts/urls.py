from config.api.routers import ItemRouter, NestedRouter, Router
from posts.views import CommentViewSet, PostCommentViewSet, PostViewSet, UserPostViewSet
from users.urls import router as users

router = Router()
router.register("posts", PostViewSet, basename="post")
comments = ItemRouter()
comments.register("comments", CommentViewSet, basename="comment")
user_posts = NestedRouter(users, "users", lookup="user")
user_posts.register("posts", UserPostViewSet, basename="user-post")
post_comments = NestedRouter(router, "posts", lookup="post")
post_comments.register("comments", PostCommentViewSet, basename="post-comment")
