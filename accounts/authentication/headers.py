def parts(header: str | None) -> list[str]:
    """The values of a header that may have been sent more than once: the server joins them by commas.

    No credential holds a comma itself.
    """
    return [] if header is None else list(map(str.strip, header.split(",")))
