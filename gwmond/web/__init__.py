"""HTTP: metrics, health, the page.  All of it is rendered from memory.

In: a request, the last snapshot.  Out: a response.
Never here: a query to the pool, but in a child that ``explain`` starts.
"""
