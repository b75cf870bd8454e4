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

_DEPTH = 4
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
        self._trained: set[int] = set()  # ids of the parameters that some optimizer updates
        self._is_trained: dict[int, tuple[weakref.ref[Any], bool]] = {}
        self._flipping = False
        self._saving = False
        self._seen_backward = False
        self._clock: DeviceClock | None = None

    def _span(self, function: Any, start: int, end: int) -> Any:
        """Wrap a plain function: a moment before, a moment after; nested calls count once."""
        import functools

        recorder = self._recorder

        @functools.wraps(function)
        def spanned(*args: Any, **kwargs: Any) -> Any:
            if self._saving:
                return function(*args, **kwargs)
            self._saving = True
            recorder.mark_cpu(start)
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                recorder.mark_cpu(end)
                self._saving = False

        return _not_compiled(spanned)

    def on_torch(self, _module: ModuleType) -> None:
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
            return serial

        def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            if not recorder.committed:
                recorder.commit()
            recorder.mark_step(serial_of(optimizer))

        module.register_optimizer_step_post_hook(after)
        add_param_group = module.Optimizer.add_param_group

        @functools.wraps(add_param_group)
        def observed(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = add_param_group(optimizer, *args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            self._trained.update(id(p) for p in optimizer.param_groups[-1]["params"])
            self._is_trained.clear()
            return result

        module.Optimizer.add_param_group = observed

    def on_dataloader(self, module: Any) -> None:
        import functools

        recorder = self._recorder
        torch = sys.modules["torch"]
        grad_enabled = torch._C.is_grad_enabled if hasattr(torch, "_C") else None  # noqa: SLF001
        tensor = torch.Tensor
        iterator = module._BaseDataLoaderIter  # noqa: SLF001
        fetch = iterator.__next__

        @functools.wraps(fetch)
        def observed(loader_iterator: Any) -> Any:
            grad = FLAG_GRAD if grad_enabled is None or grad_enabled() else 0
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
            recorder.mark_fetch_end(_rows(data, tensor), grad)
            if clock is not None:
                clock.boundary(DEVICE_LOOP)
            return data

        iterator.__next__ = observed
        make = module.DataLoader.__iter__

        @functools.wraps(make)
        def observed_iter(loader: Any) -> Any:
            grad = FLAG_GRAD if grad_enabled is None or grad_enabled() else 0
            recorder.mark_cpu(LOADER, _batches(loader, module), grad)
            try:
                return make(loader)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                recorder.mark_cpu(FETCH_END, 0, grad)

        module.DataLoader.__iter__ = observed_iter

    def on_module(self, module: Any) -> None:
        import functools

        recorder = self._recorder
        train = module.Module.train

        @functools.wraps(train)
        def observed(layer: Any, mode: bool = True) -> Any:  # noqa: FBT001, FBT002 (torch's own)
            flips = (
                not self._flipping
                and layer.__dict__.get("training") is not mode
                and self._trains(layer, module.Module)
            )
            if flips:
                self._flipping = True  # torch flips the children by the same method
                recorder.mark_cpu(TRAIN if mode else EVAL)
            try:
                return train(layer, mode)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                if flips:
                    self._flipping = False

        module.Module.train = observed

    def _trains(self, layer: Any, base: Any) -> bool:
        """Tell whether some optimizer updates a parameter of this module."""
        if not self._trained:
            return False
        known = self._is_trained.get(id(layer))
        if known is not None and known[0]() is layer:
            return known[1]
        try:
            trains = any(id(parameter) in self._trained for parameter in base.parameters(layer))
        except (AttributeError, TypeError):  # a module whose __init__ never ran to its end
            return False
        import weakref

        self._is_trained[id(layer)] = (weakref.ref(layer), trains)
        return trains


def _not_compiled(function: Any) -> Any:
    """Keep torch.compile from tracing into a wrapper of ours, without importing its parts."""
    function._torchdynamo_disable = True  # noqa: SLF001
    return function


def _kind(data: object) -> type:
    return type(data)


def _any(data: object) -> Any:
    return data


def _rows(data: Any, tensor: type) -> int:
    """Count the rows of a batch from its first tensor, -1 when there is none at hand.

    Only exact built-in containers and plain tensors are looked into: anything else could run
    the user's code.
    """
    for _ in range(_DEPTH):
        data = _any(data)
        kind = _kind(data)
        if kind is tensor:
            return data.shape[0] if data.dim() else 1
        if (kind is list or kind is tuple or hasattr(kind, "_fields")) and data:
            data = data[0]
        elif kind is dict and data:
            data = _any(next(iter(data.values())))
        else:
            break
    return -1


def _batches(loader: Any, module: Any) -> int:
    """Tell a pass's length in batches, -1 when it has none that is to be believed.

    ``len(loader)`` is not asked: for an iterable data set it would change later warnings.
    A sampler that draws far more rows than there are is an endless one.
    """
    sampler = loader.sampler
    samplers = (module.SequentialSampler, module.RandomSampler)
    if type(sampler) not in samplers or loader.batch_sampler is None:
        return -1
    if type(loader.batch_sampler) is not module.BatchSampler or not loader.batch_size:
        return -1
    try:
        rows, total = len(sampler), len(loader.dataset)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return -1
    if rows > _MOST_DRAWS * total:
        return -1
    whole, rest = divmod(rows, loader.batch_size)
    return whole + (1 if rest and not loader.drop_last else 0)
