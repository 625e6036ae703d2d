"""What everything else speaks of: turns, batches, the configuration, seeds and safe files."""
