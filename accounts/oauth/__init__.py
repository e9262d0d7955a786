"""The authorization server: what django-oauth-toolkit leaves open, or does otherwise than the contract says."""
