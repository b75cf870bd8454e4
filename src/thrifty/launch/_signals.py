"""Stand between the terminal and the script without being in the way.

The launcher shares the script's process group, so what a terminal sends (Ctrl-C, hang-up)
reaches both, and is not passed on. What somebody sends to the launcher's process alone is
passed on. What somebody sends to the whole group looks the same from here; a witness, a
process of ours in the same group that does nothing but wait for signals, tells the two apart.
Signals stay blocked here and are taken one at a time, so nothing interrupts the books.
"""

import os
import select
import signal

__all__ = ["SignalDesk", "die_by"]

_WATCHED = tuple(
    getattr(signal, name)
    for name in (
        "SIGINT",
        "SIGTERM",
        "SIGHUP",
        "SIGQUIT",
        "SIGUSR1",
        "SIGUSR2",
        "SIGTSTP",
        "SIGWINCH",
    )
    if hasattr(signal, name)
)
_WITNESS_S = 0.05
_FROM_KERNEL = 0x80  # si_code SI_KERNEL: a terminal's own


class SignalDesk:
    """Block the signals that concern the script, and hand them out one at a time."""

    def __init__(self) -> None:
        # A signal ignored when we were started (nohup, a background job) stays ignored for
        # the script, and must not be taken here either.
        self.ignored = {s for s in _WATCHED if signal.getsignal(s) is signal.SIG_IGN}
        self.taken: set[int] = set()
        """Signals that came while the script ran."""
        self._wait_for = (set(_WATCHED) - self.ignored) | {signal.SIGCHLD}
        self.script_mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._wait_for)
        """What the script must start with."""
        self._hears = self._lives = -1
        self._heard: list[int] = []

    def call_witness(self) -> None:
        """Start the witness; without one, a signal to the group reaches the script twice."""
        if not hasattr(signal, "sigtimedwait"):
            return
        try:
            hears, tells = os.pipe()
            self._lives, end = os.pipe()
            process_id = os.fork()
        except OSError:
            return
        if process_id:
            os.close(tells)
            os.close(self._lives)
            self._lives = end  # closed by our end, whatever it is: the witness ends then
            self._hears = hears
            return
        os.close(end)
        wait_for = {int(s) for s in self._wait_for if s not in {signal.SIGCHLD, signal.SIGWINCH}}
        _be_the_witness(wait_for, tells, self._lives)

    def _went_to_all(self, number: int) -> bool:
        """Tell whether the witness got the same signal."""
        # The two may take several signals in different orders.
        while number not in self._heard and self._hears >= 0:
            if not select.select([self._hears], [], [], _WITNESS_S)[0]:
                return False
            heard = os.read(self._hears, 64)
            if not heard:  # it was killed
                os.close(self._hears)
                self._hears = -1
            self._heard.extend(heard)
        if number not in self._heard:
            return False
        self._heard.remove(number)
        return True

    def close(self) -> None:
        """Let signals through again as before; what came meanwhile concerned the script."""
        if hasattr(signal, "sigtimedwait"):
            while signal.sigtimedwait(self._wait_for, 0) is not None:
                pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.script_mask)

    def wait(self, timeout_s: float, script_id: int) -> int:
        """Wait for one signal and pass it on when it was meant for the script.

        Args:
            timeout_s: At most.
            script_id: The script's process, whose exit also ends the wait.

        Returns:
            The signal that came, 0 when none did.
        """
        if not hasattr(signal, "sigtimedwait"):  # macOS: no such call; look again soon
            return self._wait_without_details(timeout_s, script_id)
        info = signal.sigtimedwait(self._wait_for, max(0.0, timeout_s))
        if info is None:
            return 0
        number = info.si_signo
        if number in {signal.SIGCHLD, signal.SIGWINCH}:
            return number
        self.taken.add(number)
        from_terminal = info.si_code == _FROM_KERNEL
        if not self._went_to_all(number) and not from_terminal and info.si_pid != script_id:
            _send(script_id, number)
        return number

    def _wait_without_details(self, timeout_s: float, script_id: int) -> int:
        import time

        time.sleep(min(timeout_s, 0.05))
        pending = signal.sigpending() & self._wait_for
        for number in pending:
            signal.sigwait({number})
            if number not in {signal.SIGCHLD, signal.SIGWINCH}:
                self.taken.add(number)
                if number == signal.SIGTERM:
                    _send(script_id, number)
            return number
        return 0


def _be_the_witness(wait_for: set[int], tells: int, lives: int) -> None:
    """Report each signal by its number until the launcher is gone; never returns."""
    try:
        # Nobody may wait for our copy of a pipe to be closed.
        kept = sorted((tells, lives))
        os.closerange(0, kept[0])
        os.closerange(kept[0] + 1, kept[1])
        os.closerange(kept[1] + 1, 4096)
        while True:
            info = signal.sigtimedwait(wait_for, 1.0)
            if info is not None:
                os.write(tells, bytes([info.si_signo]))
            elif select.select([lives], [], [], 0)[0]:
                break
    finally:
        os._exit(0)


def _send(process_id: int, number: int) -> None:
    try:
        os.kill(process_id, number)
    except ProcessLookupError:
        return  # it has just ended; its exit is on its way to us


def die_by(number: int) -> None:
    """End this process by the signal that ended the script, without a second core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
