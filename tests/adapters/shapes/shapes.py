"""Training loops of every shape; ``shapes.py NAME`` runs one and prints what it did as JSON."""

import contextlib
import copy
import json
import os
import sys
import threading
import time
import warnings
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
ROWS, WIDTH = 320, 16
DATA = TensorDataset(torch.randn(ROWS, WIDTH), torch.randint(0, 4, (ROWS,)))
loss_of = nn.CrossEntropyLoss()


def model():
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))


def train(net, optimizer, loader, limit=None):
    steps = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()
        steps += 1
        if steps == limit:
            break
    return steps


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.01)


def plain():
    net = model()
    optimizer = sgd(net)
    return {"steps": sum(train(net, optimizer, DataLoader(DATA, 32)) for _ in range(2))}


def uneven_batches():
    net = model()
    return {"steps": train(net, sgd(net), DataLoader(DATA, 48))}


def gan():
    g, d = nn.Linear(8, WIDTH), nn.Linear(WIDTH, 1)
    opt_g, opt_d = sgd(g), sgd(d)
    for x, _ in DataLoader(DATA, 32):
        opt_d.zero_grad()
        d(x).mean().backward()
        (-d(g(torch.randn(32, 8)).detach()).mean()).backward()
        opt_d.step()
        opt_g.zero_grad()
        d(g(torch.randn(32, 8))).mean().backward()
        opt_g.step()
    return {"steps": 10}


def lbfgs():
    net = nn.Linear(WIDTH, 4)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5)
    calls = 0
    for x, y in DataLoader(DATA, 64):

        def closure(x=x, y=y):
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            loss = loss_of(net(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert calls > 5
    return {"steps": 5}


def grad_scaler():
    net = model()
    optimizer = sgd(net)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    skipped = 0
    for i, (x, y) in enumerate(DataLoader(DATA, 32)):
        optimizer.zero_grad()
        loss = loss_of(net(x), y) * (float("inf") if i == 3 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        skipped += i == 3
    return {"steps": 10 - skipped}


def accumulation():
    net = model()
    optimizer = sgd(net)
    steps = 0
    for i, (x, y) in enumerate(DataLoader(DATA, 16)):
        loss_of(net(x), y).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    return {"steps": steps}


def optimizer_in_backward():
    net = model()
    optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for x, y in DataLoader(DATA, 32):
        loss_of(net(x), y).backward()
    return {"steps": 10}


def no_optimizer():
    weight = torch.zeros(WIDTH, 4, requires_grad=True)
    for x, y in DataLoader(DATA, 32):
        loss_of(x @ weight, y).backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
    return {"steps": 10, "note": "backward"}


def no_loader():
    net = model()
    optimizer = sgd(net)
    for _ in range(12):
        optimizer.zero_grad()
        rows = torch.randint(0, ROWS, (32,))
        loss_of(net(DATA.tensors[0][rows]), DATA.tensors[1][rows]).backward()
        optimizer.step()
    return {"steps": 12, "samples": None, "epochs": None}


def generator():
    net = model()

    def batches():
        while True:
            yield from DataLoader(DATA, 32)

    return {"steps": train(net, sgd(net), batches(), limit=25), "epochs": 2}


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(WIDTH), 1

    def __len__(self):
        raise SystemExit("nobody may ask an endless data set for its length")


def endless():
    net = model()
    return {"steps": train(net, sgd(net), DataLoader(Endless(), 32), limit=15), "epochs": None}


def two_trainings():
    steps = 0
    for _ in range(2):
        net = model()
        steps += train(net, sgd(net), DataLoader(DATA, 32))
    return {"steps": steps}


def workers():
    net = model()
    return {"steps": train(net, sgd(net), DataLoader(DATA, 32, num_workers=2))}


def spawned_workers():
    net = model()
    loader = DataLoader(DATA, 32, num_workers=1, multiprocessing_context="spawn")
    return {"steps": train(net, sgd(net), loader)}


def persistent_workers():
    net = model()
    optimizer = sgd(net)
    loader = DataLoader(DATA, 32, num_workers=1, persistent_workers=True)
    return {"steps": sum(train(net, optimizer, loader) for _ in range(3)), "epochs": 3}


def in_a_thread():
    net = model()
    found = []
    thread = threading.Thread(
        target=lambda: found.append(train(net, sgd(net), DataLoader(DATA, 32)))
    )
    thread.start()
    thread.join()
    return {"steps": found[0]}


def frozen_teacher():
    net, teacher = model(), model()
    optimizer = sgd(net)
    teacher.eval()
    for x, y in DataLoader(DATA, 32):
        teacher.train()
        teacher.eval()
        with torch.no_grad():
            target = teacher(x).argmax(1)
        time.sleep(0.02)
        optimizer.zero_grad()
        (loss_of(net(x), target) + loss_of(net(x), y)).backward()
        optimizer.step()
    return {"steps": 10, "absent": ["validation"]}


def validated(net_of=lambda net: net):
    net = net_of(model())
    optimizer = sgd(net)
    for _ in range(2):
        net.train()
        train(net, optimizer, DataLoader(DATA, 32))
        net.eval()
        with torch.no_grad():
            for x, _ in DataLoader(DATA, 64):
                net(x)
                time.sleep(0.02)
    return {"steps": 20, "samples": 640, "present": ["validation"]}


def compiled():
    import torch._dynamo

    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    net = torch.compile(model(), backend=backend)
    optimizer = sgd(net)
    steps = train(net, optimizer, DataLoader(DATA, 32))
    net.eval()
    with torch.no_grad():
        net(DATA.tensors[0])
    whole = torch.compile(lambda x: torch.autograd.backward(loss_of(net(x), DATA.tensors[1])))
    del whole
    step = torch.compile(optimizer.step, backend=backend)
    loss_of(net(DATA.tensors[0]), DATA.tensors[1]).backward()
    step()
    return {"steps": steps + 1, "graphs": len(graphs), "present": ["compile"]}


def saving():
    from torch import save

    net = model()
    optimizer = sgd(net)
    train(net, optimizer, DataLoader(DATA, 32))

    class Slow:
        def write(self, data):
            time.sleep(0.01)
            return len(data)

        def flush(self):
            pass

    save(net.state_dict(), Slow())
    torch.save(optimizer.state_dict(), Slow())
    return {"steps": 10, "present": ["checkpoint"]}


def odd_modules():
    class NeverInitialised(nn.Module):
        def __init__(self):
            pass

    net = model()
    optimizer = sgd(net)
    train(net, optimizer, DataLoader(DATA, 32))
    with contextlib.suppress(AttributeError):
        NeverInitialised().eval()
    with contextlib.suppress(ValueError):
        net.train("yes")
    return {"steps": 10}


class Pair(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


class Odd(Pair):
    """A named tuple of the user's, none of whose methods may be called."""

    def __bool__(self):
        raise SystemExit("asked for its truth")

    def __len__(self):
        raise SystemExit("asked for its length")

    def __getitem__(self, index):
        raise SystemExit("asked for an element")


class Meta(type):
    def __getattr__(cls, name):
        raise SystemExit(f"asked for {name}")


class Opaque(metaclass=Meta):
    _private = ("x", "y")

    def __init__(self, rows):
        self.x = torch.stack([x for x, _ in rows])
        self.y = torch.stack([y for _, y in rows])


def collated(function):
    net = model()
    optimizer = sgd(net)
    for batch in DataLoader(DATA, 32, collate_fn=function):
        x = torch.stack(list(batch[0])) if type(batch) is tuple else batch.x
        y = torch.stack(list(batch[1])) if type(batch) is tuple else batch.y
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()


def named_tuples():
    collated(lambda rows: Odd(torch.stack([x for x, _ in rows]), torch.stack([y for _, y in rows])))
    return {"steps": 10, "samples": 320}


def opaque_batches():
    collated(Opaque)
    return {"steps": 10, "samples": None}


def zipped_batches():
    collated(lambda rows: tuple(zip(*rows, strict=True)))
    return {"steps": 10, "samples": 320}


def nested_tensors():
    warnings.simplefilter("ignore")
    net = model()
    optimizer = sgd(net)
    loader = DataLoader(
        DATA, 32, collate_fn=lambda rows: torch.nested.nested_tensor([x for x, _ in rows])
    )
    for batch in loader:
        optimizer.zero_grad()
        net(torch.stack(batch.unbind())).sum().backward()
        optimizer.step()
    return {"steps": 10, "samples": None}


def single_samples():
    net = nn.Linear(WIDTH, 4)
    optimizer = sgd(net)
    for x, _ in DataLoader(DATA, batch_size=None):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
    return {"steps": 320, "samples": None}


class Counting(torch.utils.data.Dataset):
    asked = 0

    def __len__(self):
        Counting.asked += 1
        return ROWS

    def __getitem__(self, index):
        return DATA[index]


def counted_lengths():
    net = model()
    train(net, sgd(net), DataLoader(Counting(), 32, shuffle=True))
    return {"steps": 10, "samples": 320, "epochs": 1, "asked": Counting.asked}


class Printing(nn.Linear):
    def parameters(self, recurse=True):  # noqa: FBT002 (torch's own)
        print("asked for parameters")
        return super().parameters(recurse)

    def named_parameters(self, *args, **kwargs):
        print("asked for named parameters")
        return super().named_parameters(*args, **kwargs)


def printing_modules():
    net = Printing(WIDTH, 4)
    optimizer = torch.optim.SGD([net.weight, net.bias], lr=0.01)
    train(net, optimizer, DataLoader(DATA, 32))
    net.eval()
    return {"steps": 10}


def gradients_without_backward():
    net = model()
    optimizer = sgd(net)
    for x, y in DataLoader(DATA, 32):
        time.sleep(0.1)
        gradients = torch.autograd.grad(loss_of(net(x), y), list(net.parameters()))
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return {"steps": 10, "present": ["host"]}


def frozen_batch_norm():
    net = model()
    optimizer = sgd(net)
    for _ in range(2):
        net.train()
        net[1].eval()
        time.sleep(0.1)
        train(net, optimizer, DataLoader(DATA, 32))
    return {"steps": 20, "samples": 640, "absent": ["validation"]}


def evaluated_average():
    net = model()
    optimizer = sgd(net)
    for _ in range(2):
        train(net, optimizer, DataLoader(DATA, 32))
        average = copy.deepcopy(net).eval()
        for x, _ in DataLoader(DATA, 64):
            with torch.no_grad():
                average(x)
            time.sleep(0.02)
    return {"steps": 20, "samples": 640, "present": ["validation"]}


def copied_optimizer():
    net, optimizer = copy.deepcopy((model(), None))
    optimizer = sgd(net)
    net, optimizer = copy.deepcopy((net, optimizer))
    for _ in range(2):
        net.train()
        train(net, optimizer, DataLoader(DATA, 32))
        net.eval()
        time.sleep(0.1)
    return {"steps": 20, "samples": 640, "present": ["validation"]}


def never_back_to_training_mode():
    net = model()
    optimizer = sgd(net)
    for _ in range(3):
        train(net, optimizer, DataLoader(DATA, 32))
        net.eval()
        for x, _ in DataLoader(DATA, 64):
            with torch.no_grad():
                net(x)
            time.sleep(0.02)
    return {"steps": 30, "samples": 960, "present": ["validation"]}


def pseudo_labels():
    net = model()
    optimizer = sgd(net)
    for x, _ in DataLoader(DATA, 32):
        net.eval()
        with torch.no_grad():
            target = net(x).argmax(1)
        net.train()
        optimizer.zero_grad()
        loss_of(net(x), target).backward()
        optimizer.step()
    return {"steps": 10, "samples": 320}


def three_threads_in_turn():
    for _ in range(3):
        in_a_thread()
    return {"steps": 30, "samples": None}


class Inner(IterableDataset):
    def __iter__(self):
        for x, _ in DataLoader(DATA, 16):
            time.sleep(0.01)
            yield from x


def a_loader_within_a_data_set():
    net = nn.Linear(WIDTH, 4)
    optimizer = sgd(net)
    for x in DataLoader(Inner(), 32):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
    return {"steps": 10, "samples": 320, "present": ["input_wait"], "absent": ["validation"]}


def in_a_forked_child():
    time.sleep(0.3)
    child = os.fork()
    if not child:
        net = model()
        train(net, sgd(net), DataLoader(DATA, 32))
        os._exit(0)
    os.waitpid(child, 0)
    return {"steps": 10, "present": ["startup"]}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
