"""Retrieval-augmented generation inside PostgreSQL."""
