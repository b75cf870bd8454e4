"""Watch a started script from outside, and close its books when it has ended.

All text of ours comes after the script's end, on standard error, and only when that is a
terminal; what our side could not do is one line.
"""

import json
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from thrifty.launch._books import Books, Ending, sample_row
from thrifty.launch._signals import SignalDesk
from thrifty.launch._start import RunOptions, Started
from thrifty.launch._target import Target
from thrifty.ledger import Ledger, RunFolder
from thrifty.machines import (
    DeviceSample,
    DeviceSampler,
    inventory,
    read_defaults,
    resolve_price,
    thrifty_home,
    usable_cores,
)
from thrifty.records import LedgerError, Price, Run, RunStatus, ThriftyError
from thrifty.report import LiveLine

__all__ = ["watch"]

_TICK_S = 0.1
_SAMPLE_TICKS = 10
_KEEP_TICKS = (8, 30)
_LIVE_TICKS = 5
_SAMPLE_LINES = 36_000
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def watch(target: Target, options: RunOptions, started: Started) -> Run:
    """Follow a script to its end.

    Args:
        target: What was started.
        options: What the user asked of us.
        started: Its process.

    Returns:
        The run's record, as kept and shown.
    """
    notes: list[str] = []
    if not target.observable:
        notes.append(
            "an interpreter started with -S is not observed: all time is unattributed; "
            "fix: start it without -S"
        )
    elif started.records is None:
        notes.append(
            "nothing could be recorded, no folder has room for it: all time is unattributed; "
            "fix: free disk space, or set TMPDIR to a folder that can be written"
        )
    price = started.price or _saved_price(notes)
    run = _begun(target, started, price, notes)
    folder, run = _folder(run, notes)
    session = _Session(target, options, replace(run, notes=tuple(notes)), folder, started)
    return session.run_to_its_end()


def _saved_price(notes: list[str]) -> Price | None:
    try:
        return resolve_price(price=None, machine=None, spot=False)
    except ThriftyError as error:
        notes.append(f"no saved price: {error.problem}; fix: {error.fix}")
        return None


def _begun(target: Target, started: Started, price: Price | None, notes: list[str]) -> Run:
    try:
        device_count = len(inventory())
    except ThriftyError as error:
        device_count = 0
        notes.append(f"devices were not counted: {error.problem}; fix: {error.fix}")
    started_at = datetime.fromtimestamp(started.started_at_s, UTC)
    return Run(
        run_id=started.run_id,
        number=None,
        status="running",
        exit_code=None,
        script=target.script,
        argv=target.argv,
        framework=None,
        world_size=None,
        machine_count=1,
        device_count=device_count,
        started_at=started_at.isoformat(timespec="milliseconds"),
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
        next_command="",
        notes=(),
    )


def _folder(run: Run, notes: list[str]) -> tuple[RunFolder | None, Run]:
    try:
        folder = Ledger(thrifty_home()).begin(run)
    except LedgerError as error:
        notes.append(f"this run is not in the ledger: {error.problem}; fix: {error.fix}")
        return None, run
    return folder, folder.run


class _Session:
    """One run, from its start to the closing of its books."""

    def __init__(
        self,
        target: Target,
        options: RunOptions,
        run: Run,
        folder: RunFolder | None,
        started: Started,
    ) -> None:
        self._target = target
        self._options = options
        self._run = run
        self._folder = folder
        self._started = started
        self._live: LiveLine | None = None
        self._samples: TextIO | None = None
        self._sample_lines = 0
        self._devices = DeviceSampler()
        self._device_samples: tuple[DeviceSample, ...] = ()

    def run_to_its_end(self) -> Run:
        started = self._started
        if started.error is not None:
            return self._never_started(started.error)
        self._books = Books(
            self._run,
            records=started.records,
            process_id=started.process_id,
            start_ns=started.start_ns,
            cores=usable_cores(),
        )
        self._write_start(started.start_ns)
        self._start_live()
        self._start_devices()
        ending = self._watch(started.process_id, started.desk)
        self._devices.__exit__(None, None, None)
        if self._live is not None:
            self._live.close()
        return self._close(ending)

    def _never_started(self, error: OSError) -> Run:
        missing = isinstance(error, FileNotFoundError)
        code = _NOT_FOUND if missing else _NOT_EXECUTABLE
        sys.stderr.write(f"thrifty: cannot start {self._target.command[0]!r}: {error.strerror}\n")
        run = replace(
            self._run,
            status="failed",
            exit_code=code,
            summary="Nothing was started.",
            next_command="",
        )
        self._keep(run)
        self._clear_records()
        return run

    def _write_start(self, start_ns: int) -> None:
        """Leave what closing the books needs, should we be killed."""
        if self._folder is None:
            return
        try:
            with (self._folder.path / "start.json").open("w", encoding="utf-8") as stream:
                json.dump({"start_ns": start_ns, "records": str(self._started.records)}, stream)
            self._samples = (self._folder.path / "samples.jsonl").open(
                "w", encoding="utf-8", buffering=1
            )
        except OSError:
            self._samples = None

    def _start_live(self) -> None:
        mode = self._options.live
        if self._options.quiet or mode == "off" or not _stderr_is_terminal():
            return
        if mode is None:
            try:
                mode = read_defaults().live or "row"
            except ThriftyError:
                mode = "row"
        self._live = LiveLine(2, mode)

    def _start_devices(self) -> None:
        if not self._run.device_count:
            return
        try:
            self._devices.__enter__()
        except ThriftyError as error:
            self._books.notes.append(f"devices were not sampled: {error.problem}; fix: {error.fix}")

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
        self._device_samples = self._devices.sample()
        books.take_devices(self._device_samples)
        if ticks % _SAMPLE_TICKS == 0:
            self._write_sample()
        if self._live is not None and ticks % _LIVE_TICKS == _LIVE_TICKS - 1:
            self._live.update(books.progress())
        first, every = _KEEP_TICKS
        if ticks % every == first and self._folder is not None:
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
            self._samples.write(
                json.dumps(sample_row(sample, self._device_samples, self._books.start_ns)) + "\n"
            )
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
        self._clear_records()
        return run

    def _clear_records(self) -> None:
        if self._started.records is not None:
            shutil.rmtree(self._started.records, ignore_errors=True)

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
