"""The agent: an interface, and Qwen-VL models behind it."""
