"""Many trials: chosen, repeated, compared and judged."""
