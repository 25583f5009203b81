"""What each picture of docs/architecture.md shows."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.architecture.imports import (
    ROOT,
    PackageImports,
    count_imports,
    derive_layers,
    list_modules,
    read_layers,
    read_summary,
)
from scripts.architecture.path import draw_path
from scripts.architecture.svg import Picture, draw_picture

DOCS = ROOT / "docs"
_MOST_IN_A_ROW = 4  # boxes in one row of the band
_MOST_IMPORTERS = 3  # named in a box of the band; more of them are counted


def draw_pictures() -> dict[str, str]:
    """Return the text of every picture by its file name in docs/."""
    pictures = {
        "architecture-floors.svg": _show_floors(),
        "architecture-server.svg": _show_server(),
        "architecture-executors.svg": _show_package(
            "riseml.executors",
            ("base", "capabilities", "logs", "this_machine", "gpus"),
            "executors/: one package for each kind, and none imports another kind",
        ),
        "architecture-control.svg": _show_package(
            "riseml.control",
            ("observation", "actions", "explain"),
            "control/: what goes into a decision, and what comes out",
        ),
    }
    drawn = {name: draw_picture(picture) for name, picture in pictures.items()}
    return {"architecture-path.svg": draw_path(), **drawn}


def _show_floors() -> Picture:
    layers = read_layers("riseml")
    split = next(index for index, names in enumerate(layers) if "model" in names)
    return _make_picture(
        "riseml/: imports go down only; a number counts them from module to module",
        count_imports("riseml"),
        (layers[:split], layers[split:]),
        talks={("client", "server"): "HTTP"},
    )


def _show_server() -> Picture:
    layers = read_layers("riseml.server")
    split = layers.index(["server_log"])
    return _make_picture(
        "server/: routes above the loop, the loop above the hosts",
        count_imports("riseml.server"),
        (layers[:split], layers[split:]),
    )


def _show_package(package: str, shared: tuple[str, ...], title: str) -> Picture:
    imports = count_imports(package)
    above = frozenset(imports.children) - frozenset(shared)
    return _make_picture(title, imports, (derive_layers(imports, above), [shared]))


def _make_picture(
    title: str,
    imports: PackageImports,
    layers: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
    talks: dict[tuple[str, str], str] | None = None,
) -> Picture:
    """Return a picture with boxes and lines above, and a band of what most of them import below."""
    rows, shared = layers
    above = {name for row in rows for name in row}
    texts = {name: _describe_box(imports.package, name) for name in above}
    texts |= {
        name: (*_describe_box(imports.package, name), _count_users(imports, name)) for row in shared for name in row
    }
    return Picture(
        title=title,
        rows=rows,
        counts={edge: count for edge, count in sorted(imports.counts.items()) if above.issuperset(edge)},
        texts=texts,
        band_title="Imported by the boxes above, and drawn without lines",
        band=[row[start : start + _MOST_IN_A_ROW] for row in shared for start in range(0, len(row), _MOST_IN_A_ROW)],
        talks=talks,
    )


def _describe_box(package: str, name: str) -> tuple[str, ...]:
    """Return the first sentence of the docstring; below `riseml` also the modules of a package."""
    module = f"{package}.{name}"
    modules = [child for child in list_modules(module) if not child.startswith("_")]
    summary = read_summary(module)
    return (summary,) if package == "riseml" or not modules else (summary, "· " + ", ".join(modules))


def _count_users(imports: PackageImports, name: str) -> str:
    users = {source: count for (source, target), count in sorted(imports.counts.items()) if target == name}
    if len(users) > _MOST_IMPORTERS:
        return f"← {sum(users.values())} imports by {len(users)} others"
    return "← " + ", ".join(f"{source} {count}" for source, count in users.items())
