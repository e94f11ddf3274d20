"""Runs that come with fedpcs, by name: one TOML file each, in this folder."""

from __future__ import annotations

from importlib import resources


def preset_names() -> list[str]:
    """Return the presets there are, sorted."""
    return sorted(item.name.removesuffix(".toml") for item in _folder().iterdir() if item.name.endswith(".toml"))


def preset_text(name: str) -> str:
    """Return a preset's TOML."""
    return (_folder() / f"{name}.toml").read_text(encoding="utf-8")


def _folder() -> resources.abc.Traversable:
    return resources.files(__name__)
