"""Make an environment for the peers: ``python install.py FOLDER``. A peer that cannot be had does not stop the others.

What could not be installed is kept with its reason in ``FOLDER/failed.json``, where the tables find it; the next call tries again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def main(folder: Path, requirements: Path = REQUIREMENTS) -> None:
    """Install every peer that is not there yet; the exit code is 0 whatever comes of it."""
    wanted = [line.strip() for line in requirements.read_text().splitlines() if line.strip() and line[0] != "#"]
    done, failed = folder / "installed.json", {}
    there = json.loads(done.read_text()) if done.exists() else []
    missing = [peer for peer in wanted if peer not in there]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    reason = None if python.exists() else _error(sys.executable, "-m", "venv", str(folder))
    for peer in missing:
        print(f"installing {peer} beside the other peers …", flush=True)
        why = reason or _error(str(python), *PIP, peer)
        if why:
            failed[peer.partition("==")[0]] = why
        else:
            there.append(peer)
    (folder / "failed.json").write_text(json.dumps(failed, indent=1))
    done.write_text(json.dumps(there))
    for name, why in failed.items():
        print(f"{name} could not be installed: {why}", flush=True)


def _error(*command: str) -> str | None:
    """Run a command; return the last line of what it complained about, None where it went well."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    if done.returncode == 0:
        return None
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"exit code {done.returncode}"]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines)[-1].strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
