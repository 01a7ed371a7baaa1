"""What people read: reports, lists and tables of what the ledger and the snapshot hold."""
