"""Reads on replicas, and what continues without a primary: the interface for the rest of the service."""

from config.postgresql.replicas.probe import ask
from config.postgresql.replicas.reads import ReplicaRouter, begin_read, fall_back, get_read_alias, note_position
from config.postgresql.replicas.watch import (
    SECONDS_BETWEEN_LOOKS,
    find_stand_in,
    get_replicas,
    goes_on_without_primary,
)

__all__ = [
    "SECONDS_BETWEEN_LOOKS",
    "ReplicaRouter",
    "ask",
    "begin_read",
    "fall_back",
    "find_stand_in",
    "get_read_alias",
    "get_replicas",
    "goes_on_without_primary",
    "note_position",
]
