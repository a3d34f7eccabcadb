"""Random calls under random scopes, hooks included, judged from snapshots of every table (S-84, V-01)."""
