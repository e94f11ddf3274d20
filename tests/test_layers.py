"""The house has stairs that only go down: imports are read from the syntax tree and checked against the layers."""

import ast
from pathlib import Path

import fedpcs

SOURCE = Path(fedpcs.__file__).parent

# Room → layer. `game`, `sampling` and `theory` share a floor and never import one another.
LAYERS = {
    "errors": 0,
    "_validate": 0,
    "_extras": 0,
    "_files": 0,
    "_random": 0,
    "_caps": 0,
    "_inclusion": 0,
    "_chain": 0,
    "_outside": 0,
    "_processes": 0,
    "_threads": 0,
    "_format": 0,
    "game": 1,
    "sampling": 1,
    "theory": 1,
    "privacy": 1,
    "privacy.per_sample": 2,
    "privacy.private_training": 2,
    "learning": 2,
    "engines": 3,
    "experiments": 4,
    "cli": 5,
}
# Layer 0 modules may use one another; every other room is closed to its neighbours on the same floor, but for
# training, which is what the torch half of `privacy` is for.
BESIDE = {("learning", "privacy")}
HEAVY = {"torch", "flwr", "ray"}
# Rooms and parts of rooms that work with arrays alone.
NEEDS_NO_TORCH_FLOOR = 1


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def floor_of(module: str) -> int:
    """The floor of a module: that of its part of a room if it has one of its own, else the room's."""
    part = ".".join(module.split(".")[1:3])
    return LAYERS.get(part, LAYERS[room_of(module)])


def module_of(path: Path) -> str:
    return ".".join(("fedpcs", *path.relative_to(SOURCE).with_suffix("").parts))


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write it in full"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "fedpcs" else {module}
    return found


def source_files() -> list[tuple[str, Path]]:
    files = []
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        room = relative.parts[0].removesuffix(".py")
        if room != "__init__":
            files.append((room, path))
    return files


def test_every_room_has_a_floor():
    assert {room for room, _ in source_files()} <= set(LAYERS)


def test_imports_only_go_down():
    for room, path in source_files():
        for name in imports_of(path):
            target = room_of(name) if name.startswith("fedpcs") else ""
            if not target:
                continue
            here, there = floor_of(module_of(path)), floor_of(name)
            is_near = target == room or (room, target) in BESIDE or here == there == 0
            is_door = target == room and path.name == "__init__.py"  # a room's door opens on all its floors
            assert there < here or is_door or (is_near and there == here), f"{path.relative_to(SOURCE)} imports {name}"


def test_the_ground_floors_need_no_torch():
    for _, path in source_files():
        if floor_of(module_of(path)) <= NEEDS_NO_TORCH_FLOOR:
            heavy = {name.split(".")[0] for name in imports_of(path)} & HEAVY
            assert not heavy, f"{path.relative_to(SOURCE)} imports {heavy}"


def test_no_module_draws_from_a_global_generator():
    """np.random.seed, np.random.normal and friends share one hidden state; only constructors are allowed."""
    allowed = {"BitGenerator", "Generator", "default_rng", "Philox", "SeedSequence"}
    for _, path in source_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Attribute)
                and node.value.attr == "random"
                and isinstance(node.value.value, ast.Name)
                and node.value.value.id in {"np", "numpy"}
            ):
                assert node.attr in allowed, f"{path.relative_to(SOURCE)}: np.random.{node.attr}"
