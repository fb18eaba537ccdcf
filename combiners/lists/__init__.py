"""Shared functions of combiners for lists, orders and pairs, without combiners."""
