"""Pure tensor functions: layout, credit, divergences, losses and schedules."""
