"""Small tensors are slower on two threads than on one."""

import torch

torch.set_num_threads(1)
