"""What people look at: the console while a run works, and the page that it leaves behind."""
