"""From files to results: configurations, stores, figures and reports."""
