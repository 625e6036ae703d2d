"""N environments played side by side: in this process, or in processes of their own."""
