"""A pretend accelerator, for machines without one: its tensors refuse whatever a real device refuses.

Within `pretend("cuda")` a tensor sent to `cuda` becomes an `OnDevice`: it says of itself that it lives on `cuda:0`, and
keeps its numbers in a plain tensor. All operations of torch pass through here, those of autograd and vmap too. Refused,
in torch's own words: tensors of two devices in one operation (but for CPU scalars and CPU indices, which CUDA takes),
`.numpy()` and what calls it, and float64 on `mps`. Numbers are computed as on the CPU, so results can be compared.

To C++ an `OnDevice` is a meta tensor, the only device without a card that autograd knows how to wait for.
"""

from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

ATEN = torch.ops.aten
BETWEEN_DEVICES = {ATEN._to_copy.default, ATEN.copy_.default}
TAKES_CPU_INDICES = {ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default, ATEN._index_put_impl_.default}
TO_NUMPY = {Tensor.numpy, Tensor.__array__, Tensor.__dlpack__}
MADE_FROM_NUMBERS = {torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor}
STAND_IN = torch.device("meta")


class OnDevice(Tensor):
    """A tensor on the pretend device; `held` has its numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held, kind):
        where = {"strides": held.stride(), "storage_offset": held.storage_offset(), "device": STAND_IN}
        return Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, **where)

    def __init__(self, held, kind):
        if kind == "mps" and held.dtype == torch.float64:
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
            )
        self.held, self.kind = held, kind

    @property
    def device(self):
        return torch.device(self.kind, 0)

    def __repr__(self):
        return f"OnDevice({self.held}, {self.kind})"

    def __deepcopy__(self, memo):
        copied = OnDevice(self.held.clone(), self.kind).requires_grad_(self.requires_grad)
        return torch.nn.Parameter(copied, self.requires_grad) if hasattr(self, "_is_param") else copied

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        raise AssertionError(f"{function} on a pretend device that is closed")


class _Names(TorchFunctionMode):
    """What happens to names of devices before C++ sees them."""

    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = dict(named or {})
        if arguments and isinstance(arguments[0], OnDevice):
            if function in TO_NUMPY:
                where = arguments[0].device
                raise TypeError(
                    f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy it first."
                )
            if function is Tensor.tolist:
                return arguments[0].held.tolist()
            if function is Tensor.data.__set__:
                arguments[0].held = arguments[1].held
        device = named.get("device")
        if function in MADE_FROM_NUMBERS and self._is_here(device):
            return function(*arguments, **{**named, "device": "cpu"}).to(STAND_IN)
        if self._is_here(device):
            named["device"] = STAND_IN
        if function is Tensor.cuda:
            function = Tensor.to
            arguments = (arguments[0], STAND_IN)
        if function is Tensor.to:
            arguments = tuple(STAND_IN if self._is_here(one) else one for one in arguments)
        return function(*arguments, **named)

    def _is_here(self, device):
        return isinstance(device, str | torch.device) and torch.device(device).type == self._kind


class _Operations(TorchDispatchMode):
    """What happens to operations: each is carried out where its tensors are, or refused."""

    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = dict(named or {})
        wanted = named.get("device")
        if function in BETWEEN_DEVICES or wanted is not None:
            is_here = arguments[0].is_meta if wanted is None else torch.device(wanted) == STAND_IN
        else:
            is_here = _is_on_device(function, arguments, named)
        if wanted is not None:
            named["device"] = torch.device("cpu")
        given = {id(one.held): one for one in tree_leaves((arguments, named)) if isinstance(one, OnDevice)}
        found = function(*tree_map(_held, arguments), **tree_map(_held, named))
        if torch.Tag.inplace_view in function.tags and is_here:  # it changed a shape, which C++ must know of
            with torch._C._DisableTorchDispatch():
                function(*arguments, **named)

        def returned(value):
            if not (isinstance(value, Tensor) and is_here):
                return value
            return given[id(value)] if id(value) in given else OnDevice(value, self._kind)

        return tree_map(returned, found)


def _held(value):
    return value.held if isinstance(value, OnDevice) else value


def _is_on_device(function, arguments, named):
    """Say whether an operation's tensors are on the device; refuse it if some are and some are not."""
    tensors = [one for one in tree_leaves((arguments, named)) if isinstance(one, Tensor)]
    there = [one for one in tensors if isinstance(one, OnDevice)]
    if not there:
        return False
    written = _written(function, arguments, named)
    for one in tensors:
        is_scalar = one.ndim == 0 and not any(one is other for other in written)
        is_index = function in TAKES_CPU_INDICES and any(one is index for index in arguments[1])
        if not (isinstance(one, OnDevice) or is_scalar or is_index):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{there[0].device} and cpu! ({function})"
            )
    return True


def _written(function, arguments, named):
    """The tensors an operation writes to."""
    names = [one for one in function._schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    values = dict(zip([one.name for one in function._schema.arguments], arguments, strict=False)) | named
    return tree_leaves([values[one.name] for one in names if one.name in values])


@contextmanager
def pretend(kind):
    """Let `kind`, `cuda` or `mps`, be there within the block."""
    with _Names(kind), _Operations(kind):
        yield
