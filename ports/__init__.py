"""What the domain needs of the world: Protocols, the frozen values that cross them, and one error tree."""
