"""The file of ``plan --policy-out``: a policy as a table, as JSON or as a picture."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanrl.errors import OptionError, SpanrlError

if TYPE_CHECKING:
    from spanrl.models.bounded import BoundedMDP
    from spanrl.models.mdp import MDP
    from spanrl.models.policy import Policy

SUFFIXES = (".csv", ".parquet", ".json", ".png")


def check_policy_file(path: str, model: MDP | BoundedMDP) -> None:
    """Refuse a file that could not be written, before the work begins."""
    where = Path(path)
    kind = where.suffix.lower()
    if kind not in SUFFIXES:
        raise OptionError(f"plan: --policy-out must end in .csv, .parquet, .json or .png; got {path!r}.")
    if os.path.lexists(where):
        raise OptionError(f"plan: {path} exists, and nothing is overwritten unasked. Give --policy-out a new name.")
    if not where.parent.is_dir():
        raise OptionError(f"plan: --policy-out must be a file in a folder that exists; got {path!r}.")
    if kind in (".csv", ".parquet"):
        from spanrl.tables import require_polars

        require_polars()
    elif kind == ".png":
        from spanrl.axes import new_axes
        from spanrl.models.policy_figure import check_plot

        new_axes()
        try:
            check_plot(getattr(model, "state_names", None))
        except OptionError as error:
            raise OptionError(f"plan: a .png shows two coordinates alone. {error}") from None


def write_policy(path: str, policy: Policy) -> None:
    """Write the policy: the whole file, or none."""
    from spanrl.regular import written_whole

    where = Path(path)
    try:
        with written_whole(where) as stream:
            stream.write(_content(where.suffix.lower(), policy))
    except OSError as error:
        raise SpanrlError(
            f"plan: the policy {path} cannot be written ({error.strerror or error}). Give another --policy-out."
        ) from None


def _content(kind: str, policy: Policy) -> bytes:
    if kind == ".json":
        return (json.dumps({"policy": _rows(policy)}) + "\n").encode()
    if kind == ".png":
        from spanrl.axes import image, new_figure

        figure = new_figure()
        policy.plot(ax=figure.add_subplot())
        return image(figure, "png")
    from spanrl.models.policy_frame import policy_columns
    from spanrl.tables import csv_bytes, table_bytes

    return csv_bytes(policy.to_frame()) if kind == ".csv" else table_bytes(policy_columns(policy))


def _rows(policy: Policy) -> list[dict[str, Any]]:
    """Return a row per state and action played there, by name."""
    from spanrl.models.label_files import plain

    states = range(policy.n_states) if policy.state_names is None else policy.state_names
    actions = range(policy.n_actions) if policy.action_names is None else policy.action_names
    names, labels = [plain(name) for name in states], [plain(name) for name in actions]
    state, action = policy.probs.nonzero()
    rows = zip(state.tolist(), action.tolist(), policy.probs[state, action].tolist(), strict=True)
    return [{"state": names[s], "action": labels[a], "probability": p} for s, a, p in rows]
