"""How an agent is registered with Canon: the state machine, the pending record, and the service that carries them."""
