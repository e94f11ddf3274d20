"""`import fedpcs` stays light: rooms load when first used."""

import json
import subprocess
import sys

import pytest

import fedpcs


def modules_after(statement: str) -> set[str]:
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_fedpcs_loads_no_numerics():
    assert not modules_after("import fedpcs") & {"numpy", "scipy", "numba", "torch", "matplotlib", "pydantic"}


def test_importing_the_game_loads_no_torch():
    assert "torch" not in modules_after("import fedpcs.game")


def test_importing_privacy_loads_no_torch():
    assert "torch" not in modules_after("from fedpcs.privacy import UpdateMechanism, PrivacyLedger, Rho")


def test_a_list_of_exhibits_waits_for_neither_torch_nor_matplotlib():
    assert not modules_after("from fedpcs.exhibits.registry import EXHIBITS") & {"torch", "matplotlib"}


@pytest.mark.slow
def test_private_sgd_is_the_function_whatever_was_imported_before():
    statement = (
        "import fedpcs.privacy.private_training; from fedpcs.privacy import private_sgd; assert callable(private_sgd)"
    )
    assert "torch" in modules_after(statement)


def test_a_room_is_found_by_attribute():
    assert "fedpcs.game" in modules_after("import fedpcs; fedpcs.game.solve")


def test_an_unknown_room_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'cellar'"):
        _ = fedpcs.cellar


def test_dir_lists_the_rooms():
    rooms = ["deploy", "engines", "errors", "exhibits", "game", "learning", "privacy", "report", "sampling", "studies"]
    assert dir(fedpcs) == [*rooms, "theory", "trial"]
