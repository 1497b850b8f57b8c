"""Synthetic records: what AIM and PrivSyn share."""
