"""Where a PyTorch script is observed: the loader, backward, the optimizer, saves, mode flips.

Class and function patches are made right after the module that owns them was imported, so
that ``from torch import save`` gets the observed one too. Each wrapper takes its own frame
out of a passing traceback, returns what the original returned, and never calls user code.
Nothing here runs per operator, nothing synchronises a device.

This file runs inside the user's script: standard library only, torch is handed in.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident

from thrifty.adapters._device_clock import DeviceClock
from thrifty.observe._events import (
    BACKWARD_START,
    COMPILE_END,
    COMPILE_START,
    DEVICE_FETCH,
    DEVICE_LOOP,
    EVAL,
    FETCH_END,
    FLAG_GRAD,
    FLAG_LAST,
    IMPORTED,
    LOADER,
    LOG_END,
    LOG_START,
    SAVE_END,
    SAVE_START,
    TRAIN,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # a script waits for our imports: typing alone would be half of them
    import weakref
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from thrifty.observe._recorder import Recorder

__all__ = ["callbacks"]

# A named tuple's own methods may be the user's; a bare tuple's type is unknown to the checker.
_TUPLE_FIRST = tuple.__getitem__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
_TUPLE_LENGTH = tuple.__len__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
_DEPTH = 4
_MOST_RULES = 256
_MOST_DRAWS = 20
"""A sampler that draws every row more often than this is meant to be endless."""

_LOGGERS = (
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "add_image",
    "add_images",
    "add_figure",
    "add_text",
    "add_graph",
    "flush",
)


def callbacks(recorder: Recorder) -> dict[str, Callable[[Any], None]]:
    """Give the module names to watch and what to do once each is imported.

    Args:
        recorder: Where the moments go.
    """
    hooks = _Hooks(recorder)
    return {
        "torch": hooks.on_torch,
        "torch.cuda": hooks.on_cuda,
        "torch.optim.optimizer": hooks.on_optimizer,
        "torch.utils.data.dataloader": hooks.on_dataloader,
        "torch.autograd": hooks.on_autograd,
        "torch.serialization": hooks.on_serialization,
        "torch.nn.modules.module": hooks.on_module,
        "torch._dynamo.callback": hooks.on_dynamo,
        "torch.utils.tensorboard.writer": hooks.on_tensorboard,
        "torchvision.utils": hooks.on_torchvision,
        "safetensors.torch": hooks.on_safetensors,
    }


class _Hooks:
    """All hooks of one process, and the little that they remember."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._optimizers: dict[int, tuple[weakref.ref[Any], int]] = {}
        # What each living optimizer updates, by the ids of its parameters, which it keeps alive.
        self._trained: dict[int, tuple[weakref.ref[Any], set[int]]] = {}
        self._is_trained: dict[int, tuple[weakref.ref[Any], bool]] = {}
        self._flipping: set[int] = set()  # threads within Module.train
        self._saving: set[int] = set()  # threads within a save or a log
        self._fetching: set[int] = set()  # threads within a loader
        self._row_rules: dict[int, str] = {}
        self._seen_backward = False
        self._clock: DeviceClock | None = None

    def _span(self, function: Any, start: int, end: int) -> Any:
        """Wrap a plain function: a moment before, a moment after; nested calls count once."""
        import functools

        recorder = self._recorder

        @functools.wraps(function)
        def spanned(*args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            if thread in self._saving:
                return function(*args, **kwargs)
            self._saving.add(thread)
            recorder.mark_cpu(start)
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                recorder.mark_cpu(end)
                self._saving.discard(thread)

        return _not_compiled(spanned)

    def on_torch(self, _module: ModuleType) -> None:
        self._recorder.imported = 0
        self._recorder.mark_cpu(IMPORTED, 0)

    def on_cuda(self, module: Any) -> None:
        if module._is_compiled():  # noqa: SLF001 (asks the build, wakes no device)
            self._clock = DeviceClock(self._recorder, module, time.perf_counter_ns)
            os.register_at_fork(after_in_child=self._clock.forget_after_fork)

    def on_serialization(self, module: Any) -> None:
        module.save = self._span(module.save, SAVE_START, SAVE_END)

    def on_safetensors(self, module: Any) -> None:
        for name in ("save_file", "save_model"):
            if hasattr(module, name):
                setattr(module, name, self._span(getattr(module, name), SAVE_START, SAVE_END))

    def on_torchvision(self, module: Any) -> None:
        module.save_image = self._span(module.save_image, LOG_START, LOG_END)

    def on_tensorboard(self, module: Any) -> None:
        for name in _LOGGERS:
            method = getattr(module.SummaryWriter, name, None)
            if method is not None:
                setattr(module.SummaryWriter, name, self._span(method, LOG_START, LOG_END))

    def on_dynamo(self, module: Any) -> None:
        mark = self._recorder.mark_cpu

        def began(_args: Any) -> None:
            mark(COMPILE_START)

        def ended(_args: Any) -> None:
            mark(COMPILE_END)

        module.callback_handler.register_start_callback(began)
        module.callback_handler.register_end_callback(ended)

    def on_autograd(self, module: Any) -> None:
        import functools

        backward = module.backward
        recorder = self._recorder

        @functools.wraps(backward)
        def observed(*args: Any, **kwargs: Any) -> Any:
            if self._seen_backward:
                recorder.mark(BACKWARD_START)
            else:  # the first one may end the start-up: its CPU time counts
                self._seen_backward = True
                recorder.mark_cpu(BACKWARD_START)
            try:
                return backward(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        module.backward = _not_compiled(observed)

    def on_optimizer(self, module: Any) -> None:
        import functools
        import weakref

        recorder = self._recorder
        serials = self._optimizers

        def serial_of(optimizer: Any) -> int:
            known = serials.get(id(optimizer))
            if known is not None and known[0]() is optimizer:
                return known[1]
            serial = len(serials) if known is None else known[1] + 1_000_000
            serials[id(optimizer)] = (weakref.ref(optimizer), serial)
            self._learn(optimizer)  # a copied or unpickled one never added a group
            return serial

        def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            if not recorder.committed:
                recorder.commit()
            recorder.mark_step(serial_of(optimizer))

        module.register_optimizer_step_post_hook(_not_compiled(after))
        add_param_group = module.Optimizer.add_param_group

        @functools.wraps(add_param_group)
        def observed(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = add_param_group(optimizer, *args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            self._learn(optimizer)
            return result

        module.Optimizer.add_param_group = _not_compiled(observed)

    def _learn(self, optimizer: Any) -> None:
        """Remember which parameters an optimizer updates."""
        import weakref

        ids = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._trained[id(optimizer)] = (weakref.ref(optimizer), ids)
        self._is_trained.clear()

    def on_dataloader(self, module: Any) -> None:
        self._on_fetch(module)
        self._on_pass(module)

    def _on_fetch(self, module: Any) -> None:
        import functools

        recorder = self._recorder
        grad_enabled = self._grad_enabled()
        tensor = sys.modules["torch"].Tensor
        iterator = module._BaseDataLoaderIter  # noqa: SLF001
        fetch = iterator.__next__

        fetching = self._fetching

        @functools.wraps(fetch)
        def observed(loader_iterator: Any) -> Any:
            thread = get_ident()
            if thread in fetching:  # a loader within a data set: the outer one is waited for
                return fetch(loader_iterator)
            fetching.add(thread)
            grad = FLAG_GRAD if grad_enabled() else 0
            recorder.mark_fetch_start(grad)
            clock = self._clock
            if clock is not None:
                clock.boundary(DEVICE_FETCH)
            try:
                data = fetch(loader_iterator)
            except BaseException as error:
                last = FLAG_LAST if isinstance(error, StopIteration) else 0
                recorder.mark_cpu(FETCH_END, 0, grad | last)
                if clock is not None:
                    clock.boundary(DEVICE_LOOP)
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                fetching.discard(thread)
            recorder.mark_fetch_end(self._rows(loader_iterator, data, tensor), grad)
            if clock is not None:
                clock.boundary(DEVICE_LOOP)
            return data

        iterator.__next__ = _not_compiled(observed)

    @staticmethod
    def _grad_enabled() -> Any:
        """Give torch's own answer to whether gradients are recorded now."""
        return sys.modules["torch"]._C.is_grad_enabled  # noqa: SLF001

    def _on_pass(self, module: Any) -> None:
        import functools

        recorder = self._recorder
        fetching = self._fetching
        grad_enabled = self._grad_enabled()
        make = module.DataLoader.__iter__

        @functools.wraps(make)
        def observed_iter(loader: Any) -> Any:
            if get_ident() in fetching:
                return make(loader)
            grad = FLAG_GRAD if grad_enabled() else 0
            recorder.mark_cpu(LOADER, _batches(loader, module), grad)
            try:
                return make(loader)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                recorder.mark_cpu(FETCH_END, 0, grad)

        module.DataLoader.__iter__ = _not_compiled(observed_iter)

    def on_module(self, module: Any) -> None:
        import functools

        recorder = self._recorder
        train = module.Module.train

        @functools.wraps(train)
        def observed(layer: Any, mode: bool = True) -> Any:  # noqa: FBT001, FBT002 (torch's own)
            thread = get_ident()
            # An eval() of what is in evaluation mode already still says: now I validate.
            flips = (
                thread not in self._flipping
                and (mode is False or layer.__dict__.get("training") is not mode)
                and self._trains(layer)
            )
            if flips:
                self._flipping.add(thread)  # torch flips the children by the same method
                recorder.mark_cpu(TRAIN if mode else EVAL)
            try:
                return train(layer, mode)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                if flips:
                    self._flipping.discard(thread)

        module.Module.train = _not_compiled(observed)

    def _trains(self, layer: Any) -> bool:
        """Tell whether this module holds at least half of what some optimizer updates.

        A frozen BatchNorm inside the model does not, nor does a teacher.
        """
        if not self._trained:
            return False
        known = self._is_trained.get(id(layer))
        if known is not None and known[0]() is layer:
            return known[1]
        import weakref

        ids = _parameter_ids(layer)
        trains = False
        for key, (optimizer, trained) in list(self._trained.items()):
            if optimizer() is None:
                del self._trained[key]
            elif trained and 2 * len(ids & trained) >= len(trained):
                trains = True
                break
        self._is_trained[id(layer)] = (weakref.ref(layer), trains)
        return trains

    def _rows(self, iterator: Any, data: Any, tensor: Any) -> int:
        """Count the rows of a batch; -1 where only the user's code would know.

        The sampler's batch size tells which of the sizes in sight is the number of rows; the
        last, smaller batch is then read by the same rule.
        """
        sampler = iterator.__dict__.get("_index_sampler")
        size = sampler.__dict__.get("batch_size") if hasattr(sampler, "__dict__") else None
        if type(size) is not int:
            return -1
        known = self._row_rules.get(id(sampler))
        if known == "tensor" and _kind(data) is list and _kind(_first(data)) is tensor:
            return _size(_first(data))  # nearly always
        if known is not None:
            rows = _sizes(data, tensor).get(known, -1)
            return rows if rows <= size else -1
        for rule, rows in _sizes(data, tensor).items():
            if rows == size:
                if len(self._row_rules) > _MOST_RULES:
                    self._row_rules.clear()
                self._row_rules[id(sampler)] = rule
                return size
        # A pass of one partial batch: the plain shape of a collated one.
        rows = _sizes(data, tensor).get("tensor", -1)
        return rows if 0 < rows < size else -1


def _parameter_ids(layer: Any) -> set[int]:
    """Collect the ids of a module's parameters without calling any of its methods."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting: list[Any] = [layer]
    while waiting:
        module = waiting.pop()
        if module is None or id(module) in seen:
            continue
        seen.add(id(module))
        parameters: dict[str, Any] = module.__dict__.get("_parameters") or {}
        modules: dict[str, Any] = module.__dict__.get("_modules") or {}
        found.update(map(id, parameters.values()))
        waiting.extend(modules.values())
    return found - {id(None)}


def _not_compiled(function: Any) -> Any:
    """Keep torch.compile from tracing into a wrapper of ours, without importing its parts."""
    function._torchdynamo_disable = True  # noqa: SLF001
    return function


def _kind(data: object) -> type:
    return type(data)


def _any(data: object) -> Any:
    return data


def _first(data: Any) -> Any:
    """Give a container's first element, by the container's own base class."""
    kind = _kind(data)
    if kind is list:
        return data[0]
    if kind is dict:
        return next(iter(data.values()))
    return _any(_TUPLE_FIRST(data, 0))  # pyright: ignore[reportUnknownArgumentType]


def _length(data: Any) -> int:
    return len(data) if _kind(data) in (list, dict) else _TUPLE_LENGTH(data)


def _size(data: Any) -> int:
    return -1 if data.is_nested or not data.dim() else data.size(0)


def _sizes(data: Any, tensor: Any) -> dict[str, int]:
    """Give the sizes in sight that may be the number of rows, by where they stand.

    Only exact built-in containers, named tuples and plain dense tensors are looked into:
    anything else could run the user's code, or fail.
    """
    found: dict[str, int] = {}
    item: list[Any] = [data]
    for depth in range(_DEPTH):
        kind = _kind(item[0])
        if kind is tensor:
            found["tensor"] = _size(item[0])
            break
        if kind is not list and kind is not dict and not issubclass(kind, tuple):
            break
        length = _length(item[0])
        if kind is not dict:
            found[f"length{depth}"] = length
        if not length:
            break
        item[0] = _first(item[0])
    return found


def _batches(loader: Any, module: Any) -> int:
    """Tell a pass's length in batches; -1 where only the user's code would know.

    Nobody is asked whose ``__len__`` may be the user's: the length is then learned from the
    first whole pass. A sampler that draws far more rows than there are is an endless one.
    """
    fields = loader.__dict__
    sampler, batch_sampler = fields.get("sampler"), fields.get("batch_sampler")
    data, size = fields.get("dataset"), fields.get("batch_size")
    if type(batch_sampler) is not module.BatchSampler or type(size) is not int:
        return -1
    counts: Any = getattr(_kind(data), "__len__", None)
    maker = getattr(counts, "__module__", None) or ""
    builtin = _kind(data) in (list, tuple, range)
    if not builtin and maker.partition(".")[0] not in ("torch", "torchvision", "torchaudio"):
        return -1
    if type(sampler) is module.SequentialSampler:
        rows = total = len(data)
    elif type(sampler) is module.RandomSampler:
        total = len(data)
        rows = sampler.__dict__.get("_num_samples") or total
    else:
        return -1
    if rows > _MOST_DRAWS * total:
        return -1
    whole, rest = divmod(rows, size)
    return whole + (1 if rest and not fields.get("drop_last") else 0)
