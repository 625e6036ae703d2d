"""A house to do chores in, with ALFWorld's semantics and schematic pictures."""
