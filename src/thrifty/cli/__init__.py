"""The command line: one thin command for each public function."""

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    del argv
    return 0
