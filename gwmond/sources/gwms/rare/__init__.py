"""Rules for what few pilots and hosts do: the rest of the reading is understood without them."""
