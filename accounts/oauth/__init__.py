"""The authorization server: django-oauth-toolkit, and the rules of the contract where the toolkit differs."""
