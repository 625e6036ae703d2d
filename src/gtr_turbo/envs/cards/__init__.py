"""Card games whose moves spell a formula: the core that points24 and ezpoints share."""
