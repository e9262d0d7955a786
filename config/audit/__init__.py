"""The audit trail."""

from config.audit.trail import record, rows_alone

__all__ = ["record", "rows_alone"]
