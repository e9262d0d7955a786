"""The format of the log: one JSON object a line, on standard error."""

import json
import logging
from datetime import UTC, datetime

from config.http.middleware import present_request


class JSONFormatter(logging.Formatter):
    """Formats a record with the Request-Id of the current request and the fields of `facts` in its `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        # Django logs a status after the request, and passes the request in `extra`.
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
