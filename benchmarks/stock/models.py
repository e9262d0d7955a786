from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models


class User(AbstractBaseUser):
    name = models.CharField(max_length=200)
    email = models.EmailField(unique=True)
    role = models.CharField(max_length=7, default="user")
    status = models.CharField(max_length=8, default="active")
    email_verified_at = models.DateTimeField(null=True)
    external_id = models.CharField(max_length=255, null=True, unique=True)  # noqa: DJ001 - many have none
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    USERNAME_FIELD = "email"
    objects = BaseUserManager()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["status", "role"])]


class Order(models.Model):
    user = models.ForeignKey(User, on_delete=models.PROTECT)
    item = models.CharField(max_length=200)
    qty = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]


class Payment(models.Model):
    user = models.ForeignKey(User, on_delete=models.PROTECT)
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    created_at = models.DateTimeField(auto_now_add=True)


class IdempotencyKey(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    body = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="key_of_user")]
