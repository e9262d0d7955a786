"""The log of the service: on standard error, one JSON object a line."""

import json
import logging
from datetime import UTC, datetime

from config.http.middleware import present_request


class JSONFormatter(logging.Formatter):
    """Writes a line with the Request-Id of the request during which it was logged, and the `facts` of its `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        # Django logs the status of an answer when the request is over, and gives the request along.
        request = getattr(record, "request", None) or present_request.get()
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(request, "request_id", None),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
