# SPDX-License-Identifier: Apache-2.0
"""Torques by a multilayer perceptron: ``python bench/legged_mlp.py in.npz out.npz``.

Needs nothing but NumPy and PyTorch, so that it may run in an environment of its own. Reads
``x``, ``y`` (training), ``x_<name>`` (tests), ``seed``, ``activation``, ``width`` and ``epochs``;
writes ``y_<name>``.
"""

import sys
from typing import Any

import numpy as np
import torch

HIDDEN = 5
BATCH = 256
RATE = 1e-3
HELD_OUT = 0.2


def network(inputs: int, outputs: int, width: int, activation: str) -> Any:
    """Return the network of Khorshidi et al.: five hidden layers."""
    kinds = {"leaky_relu": torch.nn.LeakyReLU, "tanh": torch.nn.Tanh}
    layers: list[Any] = []
    size = inputs
    for _ in range(HIDDEN):
        layers += [torch.nn.Linear(size, width), kinds[activation]()]
        size = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(size, outputs))


def train(x: Any, y: Any, width: int, activation: str, epochs: int) -> Any:
    """Return the network with the least error on a fifth that it does not learn from."""
    order = torch.randperm(len(x))
    held = max(1, int(HELD_OUT * len(x)))
    test, learn = order[:held], order[held:]
    model = network(x.shape[1], y.shape[1], width, activation)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    best, kept = float("inf"), model.state_dict()
    for _ in range(epochs):
        for part in learn[torch.randperm(len(learn))].split(BATCH):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x[part]), y[part])
            loss.backward()
            optimiser.step()
        schedule.step()
        with torch.no_grad():
            error = float(torch.nn.functional.mse_loss(model(x[test]), y[test]))
        if error < best:
            best = error
            kept = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return model


def main(source: str, target: str) -> None:
    """Train on the file's data and write the predictions."""
    torch.set_num_threads(1)
    data = np.load(source)
    torch.manual_seed(int(data["seed"]))
    x, y = data["x"], data["y"]
    centre, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
    middle, size = y.mean(axis=0), np.maximum(y.std(axis=0), 1e-6)

    def tensor(values: Any) -> Any:
        return torch.tensor(values, dtype=torch.float32)

    model = train(
        tensor((x - centre) / scale),
        tensor((y - middle) / size),
        int(data["width"]),
        str(data["activation"]),
        int(data["epochs"]),
    )
    predictions = {}
    with torch.no_grad():
        for name in data.files:
            if name.startswith("x_"):
                inputs = tensor((data[name] - centre) / scale)
                predictions[f"y_{name[2:]}"] = model(inputs).numpy() * size + middle
    np.savez(target, **predictions)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
