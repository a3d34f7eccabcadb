"""The demo model: a deterministic planner without any AI."""
