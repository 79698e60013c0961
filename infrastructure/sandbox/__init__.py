"""The loopback Canon, the scripted model and the throw-away gateway behind canon-hermes sandbox."""
