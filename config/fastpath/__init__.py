"""The accelerator: gives the results of the reference (config.api and the apps) in a fraction of the time.

The setting FAST_PATH turns it off. Nothing but the settings and the entry points imports it; what it cannot do it
leaves to the reference. Each module says in its first lines what it replaces, and what it buys.
"""
