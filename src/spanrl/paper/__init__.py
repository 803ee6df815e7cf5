"""The paper, executed: oracles and a checker for every statement of the paper that software can check."""
