"""What a representation knows: one stage a probe, each saying when it means nothing for an encoder."""
