"""Shared data of the Remit services: frozen models, no I/O."""
