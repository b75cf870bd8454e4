"""Train a small convolutional network on real handwritten digits (they ship with scikit-learn).

An ordinary script: it knows nothing of thrifty. Its input pipeline is slow on purpose, in the
way that many are: each image is augmented in Python when it is asked for.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset[tuple[Tensor, int]]):
    """Images of 8 by 8 pixels, shifted and made noisy anew each time."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, *, augment: bool) -> None:
        self.images, self.labels, self.augment = images, labels, augment
        self.random = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        if self.augment:
            image = np.roll(image, self.random.integers(-1, 2, 2), (0, 1))
            for _ in range(150):
                image = image + self.random.normal(0, 0.008, image.shape)
        return torch.tensor(image, dtype=torch.float32)[None], int(self.labels[index])


def main() -> None:
    """Train, validate and save after each epoch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16
    train = Digits(images[360:], labels[360:], augment=True)
    held_out = Digits(images[:360], labels[:360], augment=False)
    loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=args.workers)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 64, 10),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        for image, label in loader:
            optimizer.zero_grad()
            loss = loss_of(model(image), label)
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for image, label in DataLoader(held_out, batch_size=120):
                right += int((model(image).argmax(1) == label).sum())
        print(f"epoch {epoch + 1}: {right / len(held_out):.1%} of the held-out digits right")
        torch.save(model.state_dict(), Path(__file__).with_name("digits.pt"))


if __name__ == "__main__":
    main()
