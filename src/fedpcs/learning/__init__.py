"""Learning with torch: data, models, local training and aggregation."""
