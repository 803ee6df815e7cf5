"""Confidence bounds by name: ``SCAL(5, bounds="kt")``."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any

from spanrl.confidence.estimate import Estimate
from spanrl.options import one_of, require

BOUNDS = {
    "bernstein": "bernstein:BernsteinBox",
    "kt": "kt:KT",
    "ucrl2b": "ucrl2b:UCRL2BBox",
    "ucrl3": "ucrl3:UCRL3Box",
    "kl": "kl:KLBall",
    "hoeffding": "hoeffding:HoeffdingBall",
}
"""The module in this folder, and the class: a frozen dataclass whose fields are the options it takes."""


def make_bounds(
    who: str,
    name: Any,
    delta: float | str,
    p_scale: float,
    r_scale: float,
    *,
    perturb: bool = False,
    intersect: bool = False,
) -> Estimate:
    """Return the bound of a name with its options; what it does not define is refused, unless it has no effect.

    A factor of 1 has none; ``perturb`` asks for the radii of single successors, ``intersect`` for boxes that hold for all times.
    """
    one_of(who, "bounds", name, tuple(BOUNDS))
    module, _, found = BOUNDS[name].partition(":")
    kind: Any = getattr(import_module(f"spanrl.confidence.{module}"), found)
    own, remedy = {field.name for field in fields(kind)}, "Leave it out, or use bounds='bernstein'."
    scales = {"p_scale": p_scale, "r_scale": r_scale}
    for option, scale in scales.items():
        require(option in own or scale == 1, who, f"bounds={name!r} have no factor {option}", scale, remedy)
    require(kind.varies_delta or not isinstance(delta, str), who, f"bounds={name!r} need a fixed delta", delta, remedy)
    require(not perturb or hasattr(kind, "radii_at"), who, f"bounds={name!r} cannot be perturbed", perturb, remedy)
    uniform = "Leave it out, or use bounds='kt'."
    boxes = f"bounds={name!r} cannot be intersected: boxes that hold for all times can"
    require(not intersect or kind.is_uniform, who, boxes, intersect, uniform)
    bound: Estimate = kind(delta=delta, **{option: scale for option, scale in scales.items() if option in own})
    return bound
