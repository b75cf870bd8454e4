"""Training loops of every shape; ``shapes.py NAME`` runs one and prints what it did as JSON."""

import contextlib
import json
import sys
import threading
import time

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


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
