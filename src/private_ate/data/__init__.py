"""Data in: files and frames as columns, and the domain that describes them."""
