"""From a stream event to a message the host may run: admission, background, kinds, intents, prompts."""
