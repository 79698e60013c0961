"""One turn from opening to its single answer: state, output, silence, trail, delivery."""
