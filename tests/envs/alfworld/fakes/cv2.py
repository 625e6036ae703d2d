"""Stands in for OpenCV, which ALFWorld imports and, with the oracle controller, never calls."""
