"""The OpenAPI document of a version, made from what the views declare.

drf-spectacular knows endpoints and serializers. What it cannot see of the conventions is here, one file for each:
bounds of fields, parameters, success and error answers with their headers, security, examples.
"""

from config.api.schema.generator import Generator, document, finished, without_own_description
from config.api.schema.operations import Schema

__all__ = ["Generator", "Schema", "document", "finished", "without_own_description"]
