"""The media types of requests and responses."""

JSON = "application/json"
HTML = "text/html"
PROBLEM_JSON = "application/problem+json"
JSON_API = "application/vnd.api+json"
# One JSON object a line.
NDJSON = "application/x-ndjson"
CSV = "text/csv"
# The names of the charset, in lower case: the registered one, and its label in the Encoding Standard.
UTF_8 = ("utf-8", "utf8")
# The media types of responses, the default first.
MEDIA_TYPES = (JSON, HTML, NDJSON, CSV)
