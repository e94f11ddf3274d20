"""Put exhibits that `fedpcs reproduce` has made into docs/reproduce.md, with their figures beside it.

fedpcs reproduce welfare --out ROOT        # and the others
python docs/reproduce/collect.py ROOT
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from fedpcs.experiments.exhibits.registry import EXHIBITS

PAGE = Path(__file__).parents[1] / "reproduce.md"
MARK = "<!-- exhibits -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path, metavar="ROOT")
    root = parser.parse_args().root
    order = list(EXHIBITS)
    made = [path.parent for path in root.glob("*/report.md")]
    made.sort(key=lambda folder: (order.index(_name(folder)), folder.name))
    parts = []
    for folder in made:
        figures = PAGE.with_suffix("") / folder.name
        shutil.rmtree(figures, ignore_errors=True)
        if (folder / "figures").is_dir():
            shutil.copytree(folder / "figures", figures)
        text = (folder / "report.md").read_text(encoding="utf-8")
        parts.append(text.replace("](figures/", f"](reproduce/{folder.name}/"))
    opening = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(opening + MARK + "\n\n" + "\n".join(parts), encoding="utf-8")
    print(f"{PAGE}: {len(parts)} exhibits")


def _name(folder: Path) -> str:
    return next(name for name in sorted(EXHIBITS, key=len, reverse=True) if folder.name.startswith(name))


if __name__ == "__main__":
    main()
