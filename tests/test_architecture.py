"""docs/architecture.md names what is there: every room, and no file that is gone."""

import re
from pathlib import Path

import spanrl

ROOT = Path(spanrl.__file__).parent
TEXT = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_room_is_on_the_map():
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert rooms == set(re.findall(r"^\| `(\w+)/`", TEXT, re.MULTILINE))


def test_every_file_that_is_named_exists():
    named = re.findall(r"`((?:\w+/)*\w+\.(?:py|toml))`", TEXT)
    assert len(named) > 40
    tests = Path(__file__).parents[1]
    here = ROOT / "agents"  # the table of rooms names reference.py alone
    missing = [name for name in named if not any((base / name).is_file() for base in (ROOT, tests, here))]
    assert missing == []
