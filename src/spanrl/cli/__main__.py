"""``python -m spanrl.cli``."""

import sys

from spanrl.cli import main

sys.exit(main())
