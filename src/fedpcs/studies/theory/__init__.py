"""Theory held against practice: a run under its bound, a quadratic under all of them."""
