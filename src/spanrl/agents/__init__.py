"""Who decides: one file per algorithm, and one line for it here."""

BUILT_IN = {
    "imed-rl": "imed_rl:IMEDRL",
    "psrl": "psrl:PSRL",
    "qlearning": "qlearning:QLearning",
    "scal": "scal:SCAL",
    "ucrl": "ucrl:UCRL",
    "ucrl2": "ucrl2:UCRL2",
}
"""Agents by name: the module in this folder, and the class. All else follows from the class: its fields are the parameters, ``summary`` and
``source`` describe it, and it is a public name of the package."""
