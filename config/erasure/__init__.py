"""Erases the rows of removed users, in short transactions beside the traffic."""

from config.erasure.eraser import erase

__all__ = ["erase"]
