"""Where thrifty keeps its ledger and its saved defaults.

It only computes the path: whoever writes there makes the folder, and reports what went wrong.
"""

import os
from pathlib import Path

__all__ = ["thrifty_home"]


def thrifty_home() -> Path:
    """Name the folder of the ledger and the saved defaults; it need not exist.

    ``THRIFTY_HOME``, else ``$XDG_DATA_HOME/thrifty``, else ``~/.local/share/thrifty``. A
    user without a home folder gets one below the folder for temporary files, so that a run
    still has its bill.

    Returns:
        An absolute path, unless ``THRIFTY_HOME`` is relative and the current folder is gone.

    Source: https://specifications.freedesktop.org/basedir-spec/ (0.8, 2021-05-08), which
        also says that a relative ``XDG_DATA_HOME`` is to be ignored.
    """
    named = os.environ.get("THRIFTY_HOME")
    if named:
        return _absolute(Path(os.path.expanduser(named)))  # noqa: PTH111 - Path raises on ~nobody
    data_home = Path(os.environ.get("XDG_DATA_HOME", ""))
    if data_home.is_absolute():
        return data_home / "thrifty"
    user_home = _user_home()
    if user_home is not None:
        return user_home / ".local" / "share" / "thrifty"
    # The user's number keeps two homeless users of one machine apart.
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - a last resort, see above
    return Path(temporary) / f"thrifty-{os.getuid() if hasattr(os, 'getuid') else 0}"


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError:  # the current folder was deleted
        return path


def _user_home() -> Path | None:
    named = Path(os.environ.get("HOME", ""))
    if named.is_absolute():
        return named
    try:
        import pwd

        entered = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):  # not a POSIX system; a user number without an account
        return None
    return entered if entered.is_absolute() else None
