"""The ledger: begin a run, close its books, and find every run ever made."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from thrifty.ledger._folders import (
    LEASE,
    RECORD,
    Header,
    RunFolder,
    Scan,
    Signature,
    create,
    keep,
    number_of,
    scan,
)
from thrifty.ledger._lease import is_alive, read_lease
from thrifty.ledger._record import RecordError, load_run
from thrifty.records import LedgerError, Run, RunStatus

__all__ = ["Ledger"]

_SHOWN_MATCHES = 5
_NO_RECORD = f"it has no {RECORD}"


class Ledger:
    """Every run made under one home.

    The run folders are the truth. The SQLite file beside them is only an index, made anew
    whenever it is missing, damaged or wrong; without it, reading scans the folders.

    Args:
        home: Folder of the ledger (``thrifty.machines.thrifty_home()``); made by the first
            ``begin``.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._runs = home / "runs"

    def begin(self, run: Run) -> RunFolder:
        """Give the run a number and a folder, with its record and a lease in it.

        Args:
            run: What is known at the start. It is kept as ``running``; its number is chosen
                here.

        Returns:
            The folder, to be renewed about every ten seconds and finished once.

        Raises:
            LedgerError: The home cannot be written (read-only, full).
        """
        return create(self._runs, replace(run, status="running"))

    def amend(self, run: Run) -> None:
        """Replace the record of a run whose launcher is gone, as after a recovery.

        Raises:
            LedgerError: There is no such folder, or it cannot be written.
        """
        folder = self.folder(run.number or 0)
        if not folder.is_dir():
            raise self._missing(str(run.number))
        keep(folder, run)

    def folder(self, number: int) -> Path:
        """Name a run's folder; it need not exist."""
        return self._runs / str(number)

    def runs(
        self,
        *,
        limit: int | None = None,
        status: RunStatus | None = None,
        script: str | None = None,
    ) -> list[Run]:
        """List runs, newest first; records that cannot be read are left out.

        Args:
            limit: At most so many; None for all.
            status: Only runs that ended like this. ``running`` needs a living lease:
                without one a run reads as ``incomplete``.
            script: Only runs whose script contains this text.

        Raises:
            LedgerError: The folder of runs exists but cannot be listed.
        """
        wanted = None if script is None else _plain(script)
        found: list[Run] = []
        if limit is not None and limit < 1:
            return found
        for header in self._headers():
            if header.problem is not None or (wanted is not None and wanted not in header.script):
                continue
            if status is not None and not _may_be(header.status, status):
                continue
            run = self._load(header.number)
            if run is not None and status in {None, run.status}:
                found.append(run)
                if len(found) == limit:
                    break
        return found

    def unreadable(self) -> dict[int, str]:
        """Tell which run folders hold no record that can be read, and why.

        Raises:
            LedgerError: The folder of runs exists but cannot be listed.
        """
        met = scan(self._runs)
        problems = {h.number: h.problem for h in self._headers(met) if h.problem is not None}
        problems.update(dict.fromkeys(met.without, _NO_RECORD))
        return dict(sorted(problems.items()))

    def find(self, text: str) -> Run:
        """Find one run by what a person types.

        Args:
            text: A number ("142"), "last", a run_id or the beginning of one.

        Raises:
            LedgerError: No run or several are meant by it, or its record cannot be read.
        """
        if text == "last":
            for run in self.runs(limit=1):
                return run
            raise self._missing(text)
        number = number_of(text)
        if number is not None and (run := self._numbered(number)) is not None:
            return run
        wanted = _plain(text)
        matches = [h for h in self._headers() if text and h.run_id.startswith(wanted)]
        exact = [h for h in matches if h.run_id == wanted]
        matches = exact or matches
        if len(matches) > 1:
            shown = ", ".join(f"{h.number} ({h.run_id})" for h in matches[:_SHOWN_MATCHES])
            more = ", ..." if len(matches) > _SHOWN_MATCHES else ""
            problem = f"{text!r} begins the id of {len(matches)} runs: {shown}{more}"
            fix = f"thrifty bill {matches[0].number}, or more letters of the id"
            raise LedgerError(problem, fix=fix)
        for header in matches:
            if (run := self._load(header.number)) is not None:
                return run
        raise self._missing(text)

    def rebuild(self) -> int:
        """Make the index anew from the folders.

        Returns:
            Number of runs whose record can be read.

        Raises:
            LedgerError: The folders cannot be listed, or the index cannot be written.
        """
        met = scan(self._runs)
        if not self._runs.is_dir():  # an empty ledger has no home to put an index in
            return 0
        fix = "nothing is lost: reading does without it; free it or delete it to have it back"
        try:
            from thrifty.ledger._index import Index, IndexUnusableError
        except ImportError as error:
            problem = f"cannot make the index, this Python has no sqlite3: {error}"
            raise LedgerError(problem, fix=fix) from error
        try:
            index = Index(self.home / "index.sqlite")
            index.discard()
            headers = index.headers(met.records, self._header)
        except IndexUnusableError as error:
            problem = f"cannot make the index: {error}"
            raise LedgerError(problem, fix=fix) from error
        return sum(header.problem is None for header in headers.values())

    def _headers(self, met: Scan | None = None) -> Iterable[Header]:
        """Give every record's header, newest first."""
        records = (met or scan(self._runs)).records
        newest_first = sorted(records, reverse=True)
        if not newest_first:
            return ()
        try:
            # Here, not above: a launcher needs no SQLite, and some Pythons have none.
            from thrifty.ledger._index import Index, IndexUnusableError
        except ImportError:
            return self._scanned(records, newest_first)
        try:
            headers = Index(self.home / "index.sqlite").headers(records, self._header)
        except IndexUnusableError:
            return self._scanned(records, newest_first)
        return (headers[number] for number in newest_first)

    def _scanned(self, records: dict[int, Signature], numbers: list[int]) -> Iterator[Header]:
        return (self._header(number, records[number]) for number in numbers)

    def _header(self, number: int, signature: Signature) -> Header:
        run_id, status, script, problem = "", None, "", None
        try:
            run = load_run(self.folder(number) / RECORD)
        except FileNotFoundError:  # deleted since the scan
            problem = _NO_RECORD
        except RecordError as error:
            problem = f"its {RECORD}: {error}"
        else:
            run_id, status, script = _plain(run.run_id), run.status, _plain(run.script)
        return Header(
            number=number,
            signature=signature,
            run_id=run_id,
            status=status,
            script=script,
            problem=None if problem is None else _plain(problem),
        )

    def _load(self, number: int) -> Run | None:
        """Read a run as it is to be believed now; None when its record cannot be read."""
        folder = self.folder(number)
        try:
            run = load_run(folder / RECORD)
            if run.status == "running" and (doubt := _doubt(folder)) is not None:
                # Again: the launcher may have closed the books and ended since.
                run = load_run(folder / RECORD)
                if run.status == "running":
                    run = replace(run, status="incomplete", notes=(*run.notes, doubt))
        except (FileNotFoundError, RecordError):
            return None
        # The folder's name counts: somebody may have copied or renamed it.
        return replace(run, number=number)

    def _numbered(self, number: int) -> Run | None:
        """Find by number; None when no folder has it."""
        folder = self.folder(number)
        if not folder.is_dir():
            return None
        if (run := self._load(number)) is not None:
            return run
        try:
            load_run(folder / RECORD)
            problem = "it changed while it was read"
        except FileNotFoundError:
            problem = _NO_RECORD
        except RecordError as error:
            problem = f"its {RECORD}: {error}"
        problem = f"run {number} cannot be read: {problem}"
        fix = f"look into {folder}, and delete the folder if nothing there is wanted"
        raise LedgerError(problem, fix=fix)

    def _missing(self, text: str) -> LedgerError:
        numbers = [h.number for h in self._headers() if h.problem is None]
        if not numbers:
            return LedgerError(
                f"no run {text!r}: the ledger in {self.home} is empty", fix="thrifty run train.py"
            )
        return LedgerError(
            f"no run {text!r}: the ledger in {self.home} has {len(numbers)} runs, "
            f"{numbers[-1]} to {numbers[0]}",
            fix="thrifty runs, to see them, or thrifty bill, for the last one",
        )


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _doubt(folder: Path) -> str | None:
    """Say why a run is not believed to be running; None when its lease is alive."""
    lease = read_lease(folder / LEASE)
    if lease is None:
        return f"it has no {LEASE} that says who keeps it running"
    if is_alive(lease, now=datetime.now(UTC)):
        return None
    return (
        f"its launcher (process {lease.pid} on {lease.host}, last heard of at "
        f"{lease.renewed_at}) ended without closing the books"
    )


def _may_be(written: RunStatus | None, wanted: RunStatus) -> bool:
    return written == wanted or (written == "running" and wanted == "incomplete")
