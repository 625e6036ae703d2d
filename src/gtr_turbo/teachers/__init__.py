"""Who guides the agent."""
