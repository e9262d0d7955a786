"""The stock application: the same resources as the tutorials of Django REST Framework would serve them."""

import json

from django.db import IntegrityError, transaction
from rest_framework import pagination, routers, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from benchmarks.stock.models import IdempotencyKey, Order, Payment, User


class UserSerializer(serializers.ModelSerializer):
    class Meta:
        model = User
        fields = [
            "id",
            "name",
            "email",
            "role",
            "status",
            "email_verified_at",
            "external_id",
            "created_at",
            "updated_at",
        ]


class OrderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "user_id", "item", "qty", "created_at"]


class PaymentSerializer(serializers.ModelSerializer):
    class Meta:
        model = Payment
        fields = ["id", "user_id", "amount", "created_at"]


class Pages(pagination.PageNumberPagination):
    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 100


class Cursors(pagination.CursorPagination):
    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 100
    ordering = "id"


class UserViewSet(viewsets.ModelViewSet):
    queryset = User.objects.all()
    serializer_class = UserSerializer
    pagination_class = Pages
    filterset_fields = ["status", "role"]

    @action(detail=True, filterset_fields=[])
    def orders(self, request, pk):
        page = self.paginate_queryset(Order.objects.filter(user_id=pk))
        return self.get_paginated_response(OrderSerializer(page, many=True).data)


class UserWalkViewSet(UserViewSet):
    pagination_class = Cursors


class OrderViewSet(viewsets.ModelViewSet):
    queryset = Order.objects.all()
    serializer_class = OrderSerializer
    pagination_class = Pages

    def perform_create(self, serializer):
        serializer.save(user=self.request.user)


class PaymentViewSet(OrderViewSet):
    queryset = Payment.objects.all()
    serializer_class = PaymentSerializer

    def create(self, request, *args, **kwargs):
        """The least that a payment needs: a key that was seen answers what is stored."""
        key = {"user": request.user, "key": request.headers["Idempotency-Key"]}
        try:
            with transaction.atomic():
                record = IdempotencyKey.objects.create(**key)
                answer = super().create(request, *args, **kwargs)
                record.body = JSONRenderer().render(answer.data).decode()
                record.save()
                return answer
        except IntegrityError:
            return Response(json.loads(IdempotencyKey.objects.get(**key).body), 201)


router = routers.DefaultRouter(trailing_slash=False)
router.register("users", UserViewSet)
router.register("walk", UserWalkViewSet, basename="walk")
router.register("orders", OrderViewSet)
router.register("payments", PaymentViewSet)
urlpatterns = router.urls
