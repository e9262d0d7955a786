"""Events for other systems: one feed of all changes, which clients follow without a gap, and webhooks.

EVENTS turns it off. Triggers write the events (config.postgresql.events).
"""
