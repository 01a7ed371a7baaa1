"""What would waste less of the pilots' time: estimates from the pilots and runs of a ledger."""
