"""The house has stairs that only go down: imports are read from the syntax trees and held to the floors."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fedpcs

SOURCE = Path(fedpcs.__file__).parent
FLOORS = {
    **dict.fromkeys(("game", "sampling", "theory", "privacy"), 1),
    "learning": 2,
    "engines": 3,
    "trial": 4,
    **dict.fromkeys(("deploy", "studies"), 5),
    "report": 6,
    "exhibits": 7,
    "cli": 8,
}
# The half of `privacy` that needs torch is learning's.
OF_LEARNING = ("fedpcs.privacy.per_sample", "fedpcs.privacy.private_training")
# These may use others on their own floor; all other rooms are closed to their neighbours.
BESIDE = {("learning", "privacy")}
HEAVY = {"torch", "flwr", "ray"}
WITHOUT_CYCLES = ("trial", "studies", "report", "exhibits")
MOST_IMPORTS, MOST_FILES, MOST_LINES = 12, 20, 60


def module_of(path: Path) -> str:
    parts = ("fedpcs", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imports_of(name: str) -> set[str]:
    """Return what a module imports, wherever in it: of our own the module itself, of others the package."""
    return {target for node in ast.walk(TREES[name]) for target in targets_of(node, name)}


def targets_of(node: ast.AST, name: str) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{name}: relative import; write it in full"
        whole = {f"{node.module}.{alias.name}" for alias in node.names}
        return {one if one in MODULES else str(node.module) for one in whole}
    return set()


IMPORTS = {name: imports_of(name) for name in MODULES}


def own_imports(name: str) -> set[str]:
    return {target for target in IMPORTS[name] if target in MODULES and target != name}


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def floor_of(name: str) -> int:
    return 2 if name.startswith(OF_LEARNING) else FLOORS.get(room_of(name), 0)


def test_every_room_has_a_floor():
    assert {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(FLOORS)


def test_imports_only_go_down():
    for name in MODULES:
        for target in own_imports(name):
            here, there, room, other = floor_of(name), floor_of(target), room_of(name), room_of(target)
            is_near = here == there and (room == other or here == 0 or (room, other) in BESIDE)
            is_door = room == other and MODULES[name].name == "__init__.py"  # a room's door opens on all its floors
            assert there < here or is_near or is_door, f"{name} imports {target}"


@pytest.mark.parametrize("room", WITHOUT_CYCLES)
def test_a_room_has_no_cycle_of_imports(room):
    inside = {name for name in MODULES if room_of(name) == room}
    TopologicalSorter({name: own_imports(name) & inside for name in inside}).prepare()  # raises CycleError


def used_imports(name: str) -> set[str]:
    """Return the modules of ours that a module needs to run: not those it needs for its annotations alone."""
    guarded = [
        node for node in ast.walk(TREES[name]) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    inside = {id(node) for block in guarded for node in ast.walk(block)}
    nodes = [node for node in ast.walk(TREES[name]) if id(node) not in inside]
    return {target for node in nodes for target in targets_of(node, name)} & set(MODULES) - {name}


def test_a_module_uses_at_most_twelve_of_our_own():
    """A room's door is left out: it only passes on."""
    many = {
        name for name, path in MODULES.items() if path.name != "__init__.py" and len(used_imports(name)) > MOST_IMPORTS
    }
    assert not many


def test_a_folder_holds_at_most_twenty_files():
    counts = Counter(path.parent.relative_to(SOURCE).as_posix() for path in MODULES.values())
    assert not {folder for folder, count in counts.items() if count > MOST_FILES}


def test_no_function_is_longer_than_sixty_lines():
    functions = [
        (f"{name}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert not {name for name, length in functions if length > MOST_LINES}


def test_the_ground_floors_need_no_torch():
    for name in MODULES:
        if floor_of(name) <= 1:
            heavy = {target.split(".")[0] for target in IMPORTS[name]} & HEAVY
            assert not heavy, f"{name} imports {heavy}"


def test_no_module_draws_from_a_global_generator():
    """np.random.seed, np.random.normal and friends share one hidden state; only constructors are allowed."""
    allowed = {"BitGenerator", "Generator", "default_rng", "Philox", "SeedSequence"}
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Attribute)
                and node.value.attr == "random"
                and isinstance(node.value.value, ast.Name)
                and node.value.value.id in {"np", "numpy"}
            ):
                assert node.attr in allowed, f"{name}: np.random.{node.attr}"
