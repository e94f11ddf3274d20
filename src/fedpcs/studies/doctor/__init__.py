"""`fedpcs doctor`: whether an installation works, and what a run will meet."""
