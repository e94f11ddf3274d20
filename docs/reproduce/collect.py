"""Put exhibits that `fedpcs reproduce` has made into docs/reproduce.md, with their figures beside it.

Exhibits that ROOT does not hold stay on the page as they are.

fedpcs reproduce welfare --out ROOT        # and the others
python docs/reproduce/collect.py ROOT
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from fedpcs.exhibits.registry import EXHIBITS

PAGE = Path(__file__).parents[1] / "reproduce.md"
MARK = "<!-- exhibit: "
CONTENTS = "<!-- contents -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path, metavar="ROOT")
    root = parser.parse_args().root
    opening, *kept = PAGE.read_text(encoding="utf-8").split(MARK)
    parts = {name: text for name, _, text in (part.partition(" -->\n\n") for part in kept)}
    for folder in (path.parent for path in root.glob("*/report.md")):
        figures = PAGE.with_suffix("") / folder.name
        shutil.rmtree(figures, ignore_errors=True)
        if (folder / "figures").is_dir():
            shutil.copytree(folder / "figures", figures)
        text = (folder / "report.md").read_text(encoding="utf-8")
        parts[folder.name] = text.replace("](figures/", f"](reproduce/{folder.name}/")
    order = list(EXHIBITS)
    names = sorted(parts, key=lambda name: (order.index(_exhibit(name)), name))
    sections = [f"{MARK}{name} -->\n\n{parts[name].strip()}\n" for name in names]
    before, _, after = opening.partition(CONTENTS)
    rest = after.partition(f"{CONTENTS}\n\n")[2]
    listed = "\n".join(_entry(name, parts[name]) for name in names)
    opening = f"{before}{CONTENTS}\n{listed}\n{CONTENTS}\n\n{rest}"
    PAGE.write_text(opening.rstrip() + "\n\n" + "\n".join(sections), encoding="utf-8")
    print(f"{PAGE}: {len(parts)} exhibits")


def _entry(folder_name: str, text: str) -> str:
    """Return a line of the contents: the exhibit's name and its title, which leads to its section."""
    title = text.strip().partition("\n")[0].removeprefix("## ")
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"- `{_exhibit(folder_name)}`: [{title}](#{anchor})"


def _exhibit(folder_name: str) -> str:
    return next(name for name in sorted(EXHIBITS, key=len, reverse=True) if folder_name.startswith(name))


if __name__ == "__main__":
    main()
