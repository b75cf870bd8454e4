"""Start a script, watch it from outside, and close its books when it has ended.

The script's process is our child in our own process group, on our own terminal, with our own
standard streams: nothing stands in between. All text of ours comes after its end, on standard
error, and only when that is a terminal; what our side could not do is one line.
"""

import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from thrifty.analyze import Fold, attribute, lines, summarise
from thrifty.launch._books import Books, Ending, sample_row
from thrifty.launch._signals import SignalDesk
from thrifty.launch._target import Target, script_environment
from thrifty.ledger import Ledger, RunFolder
from thrifty.machines import inventory, read_defaults, resolve_price, thrifty_home, usable_cores
from thrifty.observe import RunReader
from thrifty.records import LedgerError, Price, Run, RunStatus, ThriftyError, UsageError

if TYPE_CHECKING:
    from thrifty.report import LiveLine, LiveMode

__all__ = ["RunOptions", "check_json_path", "recover", "run_target"]

_NS = 1_000_000_000
_TICK_S = 0.1
_SAMPLE_TICKS = 10
_KEEP_TICKS = 100
_LIVE_TICKS = 5
_RESERVE_BYTES = 4 << 20
_SAMPLE_LINES = 36_000
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """What the user asked of us, as opposed to of the script."""

    price: str | float | None = None
    """USD per hour of the machine, as typed."""

    machine: str | None = None
    """``provider:instance`` of the catalogue."""

    spot: bool = False
    """Its spot price."""

    json_file: Path | None = None
    """Where the record goes as well."""

    quiet: bool = False
    """No live line, no bill."""

    live: "LiveMode | None" = None
    """How the live line shows; None for the saved default."""


def check_json_path(path: Path) -> None:
    """Refuse a place for the record that would destroy something or cannot be written.

    Raises:
        UsageError: It does not end in .json, its folder is missing, or it is a folder.
    """
    if path.suffix != ".json":
        problem = f"--json {path}: expected a name that ends in .json, so that no script is lost"
        raise UsageError(problem, fix=f"--json {path.stem or 'run'}.json")
    if path.is_dir():
        raise UsageError(f"--json {path} is a folder", fix=f"--json {path}/run.json")
    if not path.parent.is_dir():
        problem = f"--json {path}: there is no folder {path.parent}"
        raise UsageError(problem, fix=f"mkdir -p {path.parent}")


def run_target(target: Target, options: RunOptions) -> Run:
    """Run a script under observation.

    Args:
        target: What to run.
        options: Ours.

    Returns:
        Its record. The script's exit status stands in ``exit_code``.

    Raises:
        ThriftyError: One of our options cannot be used; nothing was started.
    """
    _occupy_standard_streams()
    if options.json_file is not None:
        check_json_path(options.json_file)
    notes: list[str] = []
    price = _price(options, notes)
    run = _begun(target, price, notes)
    folder, run = _folder(run, notes)
    records = _records_folder(folder, notes)
    session = _Session(target, options, replace(run, notes=tuple(notes)), folder, records)
    return session.run_to_its_end()


def _occupy_standard_streams() -> None:
    """Keep closed standard streams from becoming the numbers of our own files.

    Ours are not inherited, so the script still starts with them closed.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))


def _price(options: RunOptions, notes: list[str]) -> Price | None:
    if options.price is not None or options.machine is not None:
        return resolve_price(price=options.price, machine=options.machine, spot=options.spot)
    try:
        return resolve_price(price=None, machine=None, spot=options.spot)
    except ThriftyError as error:
        if options.spot:
            raise
        notes.append(f"no saved price: {error.problem}; fix: {error.fix}")
        return None


def _begun(target: Target, price: Price | None, notes: list[str]) -> Run:
    try:
        device_count = len(inventory())
    except ThriftyError as error:
        device_count = 0
        notes.append(f"devices were not counted: {error.problem}; fix: {error.fix}")
    now = datetime.now(UTC)
    return Run(
        run_id=f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}",
        number=None,
        status="running",
        exit_code=None,
        script=target.script,
        argv=target.argv,
        framework=None,
        world_size=None,
        machine_count=1,
        device_count=device_count,
        started_at=now.isoformat(timespec="milliseconds"),
        wall_s=0.0,
        steps=None,
        samples=None,
        samples_per_s=None,
        epochs=None,
        price=price,
        cost_usd=None,
        bill=(),
        system=None,
        summary="",
        notes=(),
    )


def _folder(run: Run, notes: list[str]) -> tuple[RunFolder | None, Run]:
    try:
        folder = Ledger(thrifty_home()).begin(run)
    except LedgerError as error:
        notes.append(f"this run is not in the ledger: {error.problem}; fix: {error.fix}")
        return None, run
    return folder, folder.run


def _records_folder(folder: RunFolder | None, notes: list[str]) -> Path | None:
    """Find a place with room for records: the run's folder, else a temporary one."""
    if folder is not None:
        path = folder.path / "records"
        try:
            path.mkdir(mode=0o700)
            _reserve(path)
        except OSError:
            pass
        else:
            return path
    try:
        path = Path(tempfile.mkdtemp(prefix="thrifty-"))
        _reserve(path)
    except OSError as error:
        notes.append(
            f"nothing could be recorded ({error.strerror}): all time is unattributed; "
            "free disk space, or set TMPDIR to a folder that can be written"
        )
        return None
    return path


def _reserve(path: Path) -> None:
    """Check that there is room for some records.

    Raises:
        OSError: There is none.
    """
    trial = path / "room"
    fd = os.open(trial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, _RESERVE_BYTES)
    finally:
        os.close(fd)
        trial.unlink()


class _Session:
    """One run, from its start to the closing of its books."""

    def __init__(
        self,
        target: Target,
        options: RunOptions,
        run: Run,
        folder: RunFolder | None,
        records: Path | None,
    ) -> None:
        self._target = target
        self._options = options
        self._run = run
        self._folder = folder
        self._records = records
        self._live: LiveLine | None = None
        self._samples: TextIO | None = None
        self._sample_lines = 0

    def run_to_its_end(self) -> Run:
        desk = SignalDesk()
        start_ns = time.perf_counter_ns()
        try:
            process_id = self._spawn(desk)
        except OSError as error:
            return self._never_started(error)
        self._books = Books(
            self._run,
            records=self._records,
            process_id=process_id,
            start_ns=start_ns,
            cores=usable_cores(),
        )
        self._write_start(start_ns)
        self._start_live()
        ending = self._watch(process_id, desk)
        if self._live is not None:
            self._live.close()
        return self._close(ending)

    def _spawn(self, desk: SignalDesk) -> int:
        """Start the script with what a plain start would have given it.

        Raises:
            OSError: The command cannot be started.
        """
        command = self._target.command
        environment = script_environment(os.environ, self._records)
        spawn = os.posix_spawn if os.sep in command[0] else os.posix_spawnp
        return spawn(
            command[0],
            list(command),
            environment,
            setsigmask=desk.script_mask or (),
            # Python ignores these for itself; a script starts with them at their defaults.
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )

    def _never_started(self, error: OSError) -> Run:
        missing = isinstance(error, FileNotFoundError)
        code = _NOT_FOUND if missing else _NOT_EXECUTABLE
        sys.stderr.write(f"thrifty: cannot start {self._target.command[0]!r}: {error.strerror}\n")
        run = replace(self._run, status="failed", exit_code=code, summary="Nothing was started.")
        self._keep(run)
        return run

    def _write_start(self, start_ns: int) -> None:
        """Leave what closing the books needs, should we be killed."""
        if self._folder is None:
            return
        try:
            with (self._folder.path / "start.json").open("w", encoding="utf-8") as stream:
                json.dump({"start_ns": start_ns, "records": str(self._records)}, stream)
            self._samples = (self._folder.path / "samples.jsonl").open("w", encoding="utf-8")
        except OSError:
            self._samples = None

    def _start_live(self) -> None:
        mode = self._options.live
        if self._options.quiet or mode == "off" or not _stderr_is_terminal():
            return
        from thrifty.report import LiveLine

        if mode is None:
            try:
                mode = read_defaults().live or "row"
            except ThriftyError:
                mode = "row"
        self._live = LiveLine(2, mode)

    # -- watching

    def _watch(self, process_id: int, desk: SignalDesk) -> Ending:
        ticks = 0
        due = time.perf_counter() + _TICK_S
        while True:
            came = desk.wait(due - time.perf_counter(), process_id)
            ended, status, usage = os.wait4(process_id, os.WNOHANG)
            if ended:
                return _ending(status, desk.taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
            if came == signal.SIGTSTP:
                self._stop_with_the_script()
            if came == signal.SIGWINCH and self._live is not None:
                self._live.resize()
            now = time.perf_counter()
            if now >= due:
                self._tick(ticks)
                ticks += 1
                due = max(due + _TICK_S, now)

    def _stop_with_the_script(self) -> None:
        if self._live is not None:
            self._live.clear()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _tick(self, ticks: int) -> None:
        books = self._books
        books.fold()
        books.tick()
        if ticks % _SAMPLE_TICKS == 0:
            self._write_sample()
        if self._live is not None and ticks % _LIVE_TICKS == _LIVE_TICKS - 1:
            self._live.update(books.progress())
        if ticks % _KEEP_TICKS == _KEEP_TICKS // 5 and self._folder is not None:
            try:
                self._folder.renew()
                self._folder.update(books.provisional())
            except LedgerError as error:
                self._folder = None
                books.notes.append(
                    f"the ledger could not be kept up to date: {error.problem}; fix: {error.fix}"
                )

    def _write_sample(self) -> None:
        sample = self._books.sample()
        if self._samples is None or self._sample_lines > _SAMPLE_LINES:
            return
        self._sample_lines += 1
        try:
            self._samples.write(json.dumps(sample_row(sample, self._books.start_ns)) + "\n")
        except OSError:
            self._samples = None

    # -- closing

    def _close(self, ending: Ending) -> Run:
        run = self._books.close(ending)
        if self._samples is not None:
            try:
                self._samples.close()
            except OSError as error:
                run = replace(run, notes=(*run.notes, f"samples are cut short: {error.strerror}"))
        problems: list[str] = []
        shown = _stderr_is_terminal() and not self._options.quiet
        if shown:
            self._show(run)
        self._keep(run, problems)
        json_file = self._options.json_file
        if json_file is not None:
            problem = _write_json(run, json_file)
            if problem is not None:
                problems.append(problem)
        if not self._options.quiet:
            if self._folder is None and not shown:
                problems.extend(note for note in run.notes if "ledger" in note)
            for problem in problems:
                _say(problem)
        if self._records is not None:
            shutil.rmtree(self._records, ignore_errors=True)
        return run

    def _keep(self, run: Run, problems: list[str] | None = None) -> None:
        if self._folder is None:
            return
        try:
            self._folder.finish(run)
        except LedgerError as error:
            if problems is not None:
                problems.append(f"the bill is not in the ledger: {error.problem}; {error.fix}")

    def _show(self, run: Run) -> None:
        from thrifty.report import can_print_blocks, render_bill

        try:
            columns = os.get_terminal_size(2).columns
        except OSError:
            columns = 80
        text = render_bill(
            run,
            width=columns or 80,
            colour="NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb",
            ascii_only=not can_print_blocks(sys.stderr.encoding if sys.stderr else "ascii"),
        )
        _say(f"\n{text}", name="")


def _ending(status: int, taken: set[int], cpu_s: float, peak: int) -> Ending:
    code = os.waitstatus_to_exitcode(status)
    how: RunStatus = "completed" if code == 0 else "failed"
    if code in {-signal.SIGINT, 128 + signal.SIGINT} or (code > 0 and signal.SIGINT in taken):
        how = "interrupted"
    elif code < 0 or (code > 128 and code - 128 in taken):  # noqa: PLR2004 (a shell's way to say it)
        how = "killed"
    return Ending(
        end_ns=time.perf_counter_ns(),
        exit_code=code,
        status=how,
        cpu_s=cpu_s,
        peak_memory_bytes=peak if sys.platform == "darwin" else peak * 1024,
    )


def _write_json(run: Run, path: Path) -> str | None:
    """Write the record whole or not at all; give what went wrong."""
    text = json.dumps(run.to_json(), indent=2) + "\n"
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        return f"--json {path} was not written: {error.strerror}; fix: thrifty bill --json"
    return None


def _stderr_is_terminal() -> bool:
    try:
        return os.isatty(2)
    except OSError:
        return False


def _say(text: str, *, name: str = "thrifty: ") -> None:
    """Write to standard error, where there is one."""
    data = f"{name}{text}\n".encode(
        (sys.stderr.encoding if sys.stderr else None) or "utf-8", errors="replace"
    )
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        return  # nobody reads it; the ledger has it


def recover(folder: Path) -> Run | None:
    """Close the books of a run whose launcher was killed, from what it left.

    Args:
        folder: The run's folder in the ledger.

    Returns:
        The record, incomplete, up to the last moment that was recorded; None when the folder
        holds too little.
    """
    ledger = Ledger(folder.parent.parent)
    run = ledger.find(folder.name)
    try:
        start = json.loads((folder / "start.json").read_text(encoding="utf-8"))
        start_ns, records = int(start["start_ns"]), Path(start["records"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    reader = RunReader(records, keep=True)
    best: Fold | None = None
    last_ns = start_ns
    for shard in reader.discover():
        fold = Fold(start_ns)
        while moments := reader.shards[shard].read():
            fold.feed(moments)
            last_ns = max(last_ns, moments[-1][0])
        if best is None or fold.steps.total() > best.steps.total():
            best = fold
    reader.close()
    if best is None:
        return None
    totals = best.totals(last_ns, cut_short=True)
    wall_ns = last_ns - start_ns
    attribution = attribute(totals, wall_ns=wall_ns, has_devices=run.device_count > 0)
    price = run.price
    wall_s = wall_ns / _NS
    run = replace(
        run,
        status="incomplete",
        wall_s=wall_s,
        steps=totals.steps,
        samples=totals.samples,
        epochs=totals.epochs,
        cost_usd=None if price is None else price.usd_per_hour * wall_s / 3600,
        bill=lines(attribution, device_count=run.device_count, price=price),
        notes=(
            *run.notes,
            *attribution.notes,
            "the launcher was killed: the bill ends at the last moment that was recorded",
        ),
    )
    return replace(run, summary=summarise(run))

