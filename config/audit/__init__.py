"""The audit trail."""

from config.audit.trail import EVENTS, record, rows_alone

__all__ = ["EVENTS", "record", "rows_alone"]
