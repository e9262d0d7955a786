"""How pages show times: always with their time zone."""

DATETIME_FORMAT = "j M Y, H:i:s\u00a0e"
