"""Helpers for tests of this service and of tools: a small store with its own memory, and a running runtime."""
