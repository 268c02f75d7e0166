"""Where the package's data folders are: in the wheel, or beside the package in a checkout.

It knows nothing of what the folders hold, and looks for nothing until it is asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from debate.errors import ConfigError

DataKind = Literal["personas", "templates", "memory"]

_PACKAGE = Path(__file__).parent


def data_folder(kind: DataKind) -> Path:
    """The folder of one kind of data: `debate/_data/<kind>` in a wheel, `<checkout>/<kind>` otherwise.

    Raises `ConfigError` when it is in neither place, which means a broken installation.
    """
    # The wheel comes first: beside an installed package lies site-packages, where a `memory` may be anybody's.
    for folder in (_PACKAGE / "_data" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise ConfigError(f"the package's own {kind} folder is missing", file=folder, hint="reinstall debate-eval")
