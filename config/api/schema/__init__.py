"""The OpenAPI document of a version, from what the views declare.

drf-spectacular derives endpoints and serializers. What it cannot derive of the API's conventions is here, one module
each: bounds of fields, parameters, success and error responses with their headers, security, examples.
"""

from config.api.schema.generator import Generator, get_document, postprocess_document
from config.api.schema.operations import Schema

__all__ = ["Generator", "Schema", "get_document", "postprocess_document"]
