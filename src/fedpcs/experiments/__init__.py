"""Whole runs and reports: configurations, the runner, its store, figures and pages; what the command line calls."""
