# As in pyproject.toml, which an image does not hold.
VERSION = "0.1.0"
