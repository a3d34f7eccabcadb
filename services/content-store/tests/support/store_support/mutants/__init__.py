"""Mutants of the scope's rules."""
