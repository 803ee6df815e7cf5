"""Who decides: one file per algorithm, and one line for it here."""

BUILT_IN = {
    "focus": "focus:FOCUS",
    "imed-rl": "imed_rl:IMEDRL",
    "kl-ucrl": "kl_ucrl:KLUCRL",
    "psrl": "psrl:PSRL",
    "qlearning": "qlearning:QLearning",
    "scal": "scal:SCAL",
    "scal-plus": "scal_plus:SCALPlus",
    "tsde": "tsde:TSDE",
    "tucrl": "tucrl:TUCRL",
    "ucrl": "ucrl:UCRL",
    "ucrl2": "ucrl2:UCRL2",
    "ucrl2b": "ucrl2b:UCRL2B",
    "ucrl3": "ucrl3:UCRL3",
}
"""Agents by name: the module in this folder, and the class. All else follows from the class: its fields are the parameters, ``summary`` and
``source`` describe it, and it is a public name of the package."""
