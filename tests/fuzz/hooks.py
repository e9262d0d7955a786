"""What Schemathesis must be told about this service in Python; it runs it in the environment of the clients."""

import schemathesis
from schemathesis.specs.openapi.checks import object_level_authorization

# What people write is there for all to read.
READ_BY_ALL = ("/posts", "/comments")


@schemathesis.check
def object_of_another(ctx, response, case):
    """Schemathesis' own check, but for what belongs to everybody: it cannot be turned off for some operations."""
    if not any(part in case.operation.path for part in READ_BY_ALL):
        object_level_authorization(ctx, response, case)
