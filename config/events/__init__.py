"""What happened, told to others: the feed of events, and webhooks. `EVENTS=false` leaves all of it out."""
