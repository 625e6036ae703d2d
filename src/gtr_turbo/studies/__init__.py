"""Studies: arms × seeds on one panel, run, compared and shown."""
