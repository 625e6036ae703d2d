"""How the agent learns: the method, its supervised start, and what a run keeps."""
