"""The audit trail."""

from config.audit.trail import EVENTS, record, record_write, rows_alone

__all__ = ["EVENTS", "record", "record_write", "rows_alone"]
