"""The OpenAPI document."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from config.api.representation.renderers import JSONRenderer
from config.api.schema.fields import build_object, build_string
from config.api.schema.generator import get_document
from config.api.versions import versioning
from config.api.views import View
from config.http.lanes import Lane
from config.site.health import UnversionedMixin


class SchemaView(UnversionedMixin, View):
    """The OpenAPI document of the version that `?version=` names, or the Accept header."""

    texts = {"get": "Read the OpenAPI document.\n\nChoose its version with `version` or the `Accept` header."}

    renderer_classes = [JSONRenderer]
    envelope_known = False
    names_version = True
    # The first time it is made, and it is long.
    lanes = {"GET": Lane.SLOW, "HEAD": Lane.SLOW}

    @extend_schema(
        responses={
            200: build_object(
                {
                    "openapi": build_string(16, r"^3\.1\."),
                    "info": {"type": "object"},
                    "paths": {"type": "object"},
                    "components": {"type": "object"},
                },
                additionalProperties=True,
            )
        }
    )
    def get(self, request: Request) -> Response:
        return Response(get_document(versioning.get_version(request)))
