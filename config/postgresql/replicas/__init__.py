"""Reads on replicas, and what continues without a primary."""
