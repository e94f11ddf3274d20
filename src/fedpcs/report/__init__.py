"""Results become pages and figures."""
