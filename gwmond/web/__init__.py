"""HTTP: metrics, health, the page.  All of it is rendered from memory."""
