"""Pages are made of templates, which hold all tags and stand beside the modules that gather the data; what is not Markup is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from spanrl.errors import missing_extra

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape
except ImportError:
    raise missing_extra("report", "jinja2", "report") from None

__all__ = ["Markup", "escape", "render"]


def render(name: str, **values: Any) -> Markup:
    """Return the template ``name``, a path below the package spanrl, filled with ``values``."""
    return Markup(_environment().get_template(name).render(values))


@cache
def _environment() -> Environment:
    """Return what reads the templates: an unknown name is an error, and ``file(path)`` is a style sheet or a program as it stands."""
    loader = PackageLoader("spanrl", ".")
    out = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    out.globals["file"] = lambda path: Markup(loader.get_source(out, path)[0])
    out.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return out
