"""Python run in a child process, where nothing has been imported yet."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def answer_of(source: str) -> Any:
    """What `source` leaves in its variable `answer`, in a fresh interpreter; it must end without an error."""
    program = f"{source}\nimport json\nprint()\nprint(json.dumps(answer))"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])
