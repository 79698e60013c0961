"""Inbound attachments: what the model may see, what trusted tools may read, and what is withheld."""
