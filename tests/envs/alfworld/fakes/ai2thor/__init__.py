"""Stands in for ai2thor, so that ALFWorld's own code can run without Unity."""
