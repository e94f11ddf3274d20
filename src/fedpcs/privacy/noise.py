"""Where noise comes from. Three sources, one promise each.

- `FastNoise`: Gaussian floats from a seed. For simulation: whoever knows the seed knows the noise, and floats leak.
- `SecureNoise`: Gaussian draws from a ChaCha stream keyed by the operating system, rounded to a grid.
- `ExactNoise`: the discrete Gaussian on the same grid, drawn exactly from such a stream.

Why a grid. The float nearest to x + noise has low-order bits that depend on x: noise near −1 added to x = 1 leaves a
multiple of 2⁻⁵³, noise near 0 added to x = 0 hardly ever does, and one such coordinate tells x whatever ρ says (Mironov
2012). With x and the noise both whole multiples of one unit, their sum is too, and its digits tell nothing. Rounding
moves two neighbouring values apart by at most one unit a coordinate, which `fedpcs.privacy.mechanism` pays for.

Noise is drawn here and added in `fedpcs.privacy.mechanism`; nothing else should call `draw`.
"""

from __future__ import annotations

import os
import secrets
from typing import ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from fedpcs import _random, _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.privacy.discrete import discrete_gaussian
from fedpcs.privacy.events import Family

# Units of the grid to one standard deviation. Fine enough that the grid costs 0.01 % of noise for a million parameters
# at ρ = 0.3, coarse enough that sums stay whole numbers a float64 holds exactly.
GRID_PER_STDDEV = 2**24
NAMES = ("fast", "secure", "exact")
_KEY_BITS = 256
_ROUNDS = 12  # of ChaCha; no attack is known on more than 7


@runtime_checkable
class NoiseSource(Protocol):
    """A stream of standard noise.

    Attributes:
        name: As reports print it.
        family: Law of the noise, which decides which ε may be quoted.
        is_replayable: The same source made again gives the same bits.
        is_guarantee: Reports may say that the guarantee holds.
        units_per_stddev: Draws are whole numbers of this many units to one standard deviation; None: draws are
            floats of standard deviation 1.
    """

    name: ClassVar[str]
    family: ClassVar[Family]
    is_replayable: ClassVar[bool]
    is_guarantee: ClassVar[bool]
    units_per_stddev: ClassVar[int | None]

    def draw(self, size: int) -> FloatArray:
        """Return `size` fresh draws: whole numbers, or floats of standard deviation 1 if there is no grid."""
        ...


class FastNoise:
    """Gaussian floats that depend on nothing but (seed, round, client). For simulation."""

    name: ClassVar[str] = "fast"
    family: ClassVar[Family] = Family.GAUSSIAN
    is_replayable: ClassVar[bool] = True
    is_guarantee: ClassVar[bool] = False
    units_per_stddev: ClassVar[int | None] = None

    def __init__(self, seed: int, round_index: int = 0, client: int = 0) -> None:
        self._generator = _random.generator(seed, "noise", round_index, client)

    def draw(self, size: int) -> FloatArray:
        """Return standard normal floats, the next of this stream."""
        return self._generator.standard_normal(_validate.integer("size", size, low=0))


class SecureNoise:
    """Gaussian draws no seed can repeat, on a grid no low-order bit can leak through."""

    name: ClassVar[str] = "secure"
    family: ClassVar[Family] = Family.GAUSSIAN
    is_replayable: ClassVar[bool] = False
    is_guarantee: ClassVar[bool] = True
    units_per_stddev: ClassVar[int | None] = GRID_PER_STDDEV

    def __init__(self) -> None:
        self._stream = _OwnStream()

    def draw(self, size: int) -> FloatArray:
        """Return Gaussian draws of standard deviation `units_per_stddev`, rounded to whole numbers."""
        generator = np.random.Generator(self._stream.bits())
        draws = generator.standard_normal(_validate.integer("size", size, low=0))
        draws *= GRID_PER_STDDEV
        return np.rint(draws, out=draws)


class ExactNoise:
    """The discrete Gaussian, drawn exactly, from a stream no seed can repeat."""

    name: ClassVar[str] = "exact"
    family: ClassVar[Family] = Family.DISCRETE_GAUSSIAN
    is_replayable: ClassVar[bool] = False
    is_guarantee: ClassVar[bool] = True
    units_per_stddev: ClassVar[int | None] = GRID_PER_STDDEV

    def __init__(self) -> None:
        self._stream = _OwnStream()

    def draw(self, size: int) -> FloatArray:
        """Return discrete Gaussian draws of scale `units_per_stddev`."""
        return discrete_gaussian(self._words, GRID_PER_STDDEV, size).astype(np.float64)

    def _words(self, count: int) -> NDArray[np.uint64]:
        return np.asarray(self._stream.bits().random_raw(count), dtype=np.uint64)


def noise_source(name: str, *, seed: int | None = None, round_index: int = 0, client: int = 0) -> NoiseSource:
    """Return a source by name; only "fast" takes a seed, and it needs one.

    Example:
        >>> noise_source("secure").is_guarantee, noise_source("fast", seed=1).is_guarantee
        (True, False)
    """
    _validate.choice("noise", name, NAMES)
    if name == "fast":
        if seed is None:
            raise InvalidInput(
                "seed must be given for noise 'fast', got None. Take 'secure' for noise nobody can repeat."
            )
        return FastNoise(seed, round_index, client)
    return SecureNoise() if name == "secure" else ExactNoise()


class _OwnStream:
    """Random bits that are drawn once: a forked process gets a key of its own, and no copy can be made."""

    def __init__(self) -> None:
        self._bits, self._process_id = _keyed_stream(), os.getpid()

    def bits(self) -> np.random.BitGenerator:
        """Return the stream of this process."""
        if os.getpid() != self._process_id:
            self._bits, self._process_id = _keyed_stream(), os.getpid()
        return self._bits

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("a noise source cannot be copied: both would add the same noise. Make a new one.")


def _keyed_stream() -> np.random.BitGenerator:
    stream: np.random.BitGenerator = ChaCha(key=secrets.randbits(_KEY_BITS), rounds=_ROUNDS)
    return stream
