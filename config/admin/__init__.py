"""What the admin pages of several apps share; Django looks here for what is registered."""

from config.admin import base

__all__ = ["base"]
