"""digits-app: the network, the data, training and testing."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """A small convolutional network for images of 8 × 8."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.hidden = nn.Linear(16 * 4 * 4, 64)
        self.scores = nn.Linear(64, 10)

    def forward(self, images):
        """Return one score for each digit."""
        features = functional.max_pool2d(functional.relu(self.conv(images)), 2)
        return self.scores(functional.relu(self.hidden(features.flatten(1))))


def load_all():
    """Return all images, in an order that is the same everywhere, and their labels."""
    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16.0
    return images[order], torch.tensor(digits.target)[order]


def load_data(partition_id, num_partitions, batch_size):
    """Return a client's own images, for training and for testing: the first client has fewest, the last most."""
    images, labels = load_all()
    shares = torch.arange(num_partitions + 1) * torch.arange(1, num_partitions + 2)
    ends = (shares * 1500 / shares[-1]).long()
    mine = TensorDataset(images, labels)[ends[partition_id] : ends[partition_id + 1]]
    num_train = int(0.8 * len(mine[1]))
    train, test = ([part[:num_train] for part in mine], [part[num_train:] for part in mine])
    return (
        DataLoader(TensorDataset(*train), batch_size=batch_size, shuffle=True),
        DataLoader(TensorDataset(*test), batch_size=batch_size),
    )


def load_test_data():
    """Return the images that no client has."""
    images, labels = load_all()
    return DataLoader(TensorDataset(images[1500:], labels[1500:]), batch_size=64)


def train(model, trainloader, epochs, lr, device):
    """Train a model and return its mean loss on the way."""
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    total = 0.0
    for _ in range(epochs):
        for images, labels in trainloader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(trainloader))


def test(model, testloader, device):
    """Return a model's mean loss and its accuracy."""
    model.to(device).eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for images, labels in testloader:
            scores = model(images.to(device))
            loss += functional.cross_entropy(scores, labels.to(device), reduction="sum").item()
            correct += (scores.argmax(1) == labels.to(device)).sum().item()
    return loss / len(testloader.dataset), correct / len(testloader.dataset)
