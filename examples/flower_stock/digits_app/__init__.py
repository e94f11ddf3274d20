"""digits-app: a Flower / PyTorch app on the digits that come with scikit-learn."""
