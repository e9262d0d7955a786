from rest_framework import serializers

from config.api.serializers import Text


class LoginSerializer(serializers.Serializer):
    # Any text: what is no email is nobody's, and is answered like any other wrong one.
    email = Text(max_length=254)
    password = Text(max_length=128)


class RefreshTokenSerializer(serializers.Serializer):
    refresh_token = Text()


class TokenPairSerializer(serializers.Serializer):
    """The tokens of a login, in the words of RFC 6749, section 5.1."""

    access_token = serializers.CharField()
    refresh_token = serializers.CharField()
    token_type = serializers.ChoiceField(["Bearer"])
    expires_in = serializers.IntegerField(help_text="Seconds until the access token expires.")
