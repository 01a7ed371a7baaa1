"""What is served over HTTP: metrics, health, pages.  All of it renders memory."""
