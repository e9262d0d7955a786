"""Webhooks: events are sent to the addresses of their owners, signed, at least once (docs/guide/webhooks.md)."""
