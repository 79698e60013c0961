"""Cards: what a ``canon.card.v1`` document may contain, and how a wrong one is explained."""
