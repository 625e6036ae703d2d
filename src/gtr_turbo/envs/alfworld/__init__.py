"""ALFWorld's own games as a task: the text engine, and THOR's pictures (extra ``alfworld``)."""
