"""The OpenAPI document of a version, from what the views declare.

drf-spectacular derives endpoints and serializers. What it cannot derive of the API's conventions is here, one module
each: bounds of fields, parameters, success and error responses with their headers, security, examples.
"""
