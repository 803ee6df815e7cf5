"""How to solve: operators, the one solver core, policy iteration, exact evaluation and analysis."""
