"""Erases the rows of removed users, in short transactions beside the traffic."""
