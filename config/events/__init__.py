"""What happened, told to others: one feed of all changes that is followed without a gap, and webhooks.

EVENTS turns it off. Triggers write the events (config.postgresql.events).
"""
