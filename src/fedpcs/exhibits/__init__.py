"""The paper's tables and figures, one file each, and what we add to them."""
