"""Fine-tuning: an encoder of any family plus labelled examples give a task model and its predictions."""
