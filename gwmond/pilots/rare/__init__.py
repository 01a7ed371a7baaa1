"""Rules for cases that are rare: the others are read without them."""
