"""An agent in an environment: the episode loop, its measurements, and the run they give."""
