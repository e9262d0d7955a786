"""Draws architecture.svg and scale.svg from the texts beside them, whose form architecture.txt explains.

.venv/bin/python docs/architecture.py
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
COLUMN, ROW, HEIGHT = 140, 96, 54
LEFT, TOP = 24, 84
FILLS = {
    "outside": "#eceff1",
    "config": "#e3f2fd",
    "app": "#e8f5e9",
    "stock": "#fffde7",
    "accelerator": "#fff3e0",
    "node": "#e3f2fd",
    "database": "#fffde7",
}
STROKES = {
    "request": 'stroke="#1565c0" marker-end="url(#request)"',
    "import": 'stroke="#616161" stroke-dasharray="5 4" marker-end="url(#import)"',
    "replication": 'stroke="#616161" stroke-dasharray="5 4" marker-end="url(#import)"',
}
LEGEND = {"config": "package of config", "app": "apps", "accelerator": "accelerator", "stock": "Django"}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
  role="img" aria-label="{label}" font-family="system-ui, 'DejaVu Sans', sans-serif"
  text-anchor="middle" fill="#212121">
<defs><marker id="request" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
  <path d="M0 0 8 4 0 8z" fill="#1565c0"/></marker>
<marker id="import" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
  <path d="M0 0 8 4 0 8z" fill="#616161"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>"""


class Box(NamedTuple):
    """Left, right and upper edge, in pixels."""

    left: float
    right: float
    top: float


def render(source: str) -> str:
    """The SVG of a source."""
    lines = [line for line in source.splitlines() if line and not line.startswith("#")]
    parts = list(_parts(lines))
    boxes = [line.split() for line in lines if line.startswith("box")]
    columns = max(float(column) + float(wide) for _, _, column, _, wide, *_ in boxes)
    rows = max(float(row) for _, _, _, row, *_ in boxes)
    width, height = columns * COLUMN + 2 * LEFT, round(TOP + rows * ROW + HEIGHT + 56)
    kinds = {words[5] for words in boxes} | {line.split()[3] for line in lines if line.startswith("arrow")}
    titles = [line.split(maxsplit=2)[2] for line in lines if line.startswith("panel")]
    head = HEAD.format(width=round(width), height=height, label=escape("; ".join(titles)))
    return "\n".join([head, *parts, *_legend(height - 20, kinds), "</svg>", ""])


def _parts(lines: list[str]) -> Iterator[str]:
    boxes: dict[str, Box] = {}
    for line in lines:
        match line.split():
            case ["panel", column, *title]:
                yield _text(LEFT + float(column) * COLUMN, 36, " ".join(title), 18, "start")
            case ["note", column, row, *words]:
                yield _text(LEFT + float(column) * COLUMN, TOP + float(row) * ROW + 14, " ".join(words), 11, "start")
            case ["box", name, column, row, wide, kind, *words]:
                left, top = LEFT + float(column) * COLUMN, TOP + float(row) * ROW
                boxes[name] = Box(left, left + float(wide) * COLUMN, top)
                yield from _box(boxes[name], kind, *" ".join(words).split(" / "))
            case ["arrow", origin, target, kind] if boxes[origin].top == boxes[target].top:
                left, right, top = boxes[origin].right, boxes[target].left, boxes[origin].top
                yield _arrow(f"M{left:.0f} {top + HEIGHT / 2:.0f}H{right - 1:.0f}", kind)
            case ["arrow", origin, target, kind, *column]:
                at = LEFT + float(column[0]) * COLUMN if column else _middle(boxes[origin], boxes[target])
                yield _arrow(f"M{at:.0f} {boxes[origin].top + HEIGHT:.0f}V{boxes[target].top - 1:.0f}", kind)
            case _:
                raise ValueError(line)


def _arrow(path: str, kind: str) -> str:
    return f'<path d="{path}" fill="none" stroke-width="1.5" {STROKES[kind]}/>'


def _middle(one: Box, other: Box) -> float:
    return (max(one.left, other.left) + min(one.right, other.right)) / 2


def _box(box: Box, kind: str, title: str, subtitle: str = "") -> Iterator[str]:
    yield (
        f'<rect x="{box.left:.0f}" y="{box.top:.0f}" width="{box.right - box.left:.0f}" height="{HEIGHT}" rx="6" '
        f'fill="{FILLS[kind]}" stroke="#90a4ae"/>'
    )
    yield _text((box.left + box.right) / 2, box.top + (23 if subtitle else 32), title, 14)
    if subtitle:
        yield _text((box.left + box.right) / 2, box.top + 41, subtitle, 10.5)


def _text(x: float, y: float, text: str, size: float, anchor: str = "middle") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(y: float, kinds: set[str]) -> Iterator[str]:
    x = LEFT
    for kind, stroke in STROKES.items():
        if kind not in kinds:
            continue
        yield f'<path d="M{x} {y - 4}h34" stroke-width="1.5" {stroke}/>'
        yield _text(x + 42, y, kind + "s" * (kind == "import"), 11, "start")
        x += 110
    for kind, name in LEGEND.items():
        if kind not in kinds:
            continue
        yield f'<rect x="{x}" y="{y - 11}" width="18" height="13" rx="3" fill="{FILLS[kind]}" stroke="#90a4ae"/>'
        yield _text(x + 26, y, name, 11, "start")
        x += 40 + 7 * len(name)


if __name__ == "__main__":
    for name in ("architecture", "scale"):
        (FOLDER / f"{name}.svg").write_text(render((FOLDER / f"{name}.txt").read_text()))
