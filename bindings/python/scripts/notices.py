"""The licences of the crates whose code is in a wheel, as one text: `python scripts/notices.py > THIRD-PARTY-LICENSES.txt`.

`cargo metadata` names the packages of the library of `trueio.direct` and of the program, on any system, without build scripts and
procedural macros: these run during the build, and nothing of them is in it. The text of each licence is the file in
the package's source.
"""

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The manifest, and the package that is in a wheel.
SHIPPED = ((ROOT / "Cargo.toml", "trueio-python"), (ROOT.parent.parent / "Cargo.toml", "trueio-cli"))


def linked(manifest: pathlib.Path, shipped: str) -> list[dict[str, Any]]:
    """The packages of others that `shipped` is linked with, as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--manifest-path", str(manifest)]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    left, seen = [found for found, package in packages.items() if package["name"] == shipped], set()
    while left:
        found = left.pop()
        is_macro = any("proc-macro" in target["kind"] for target in packages[found]["targets"])
        if is_macro or found in seen:
            continue
        seen.add(found)
        # None: a normal dependency, not one of tests or of a build script.
        left += [dep["pkg"] for dep in nodes[found]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return [packages[found] for found in seen if packages[found]["source"] is not None]


def notices(*, with_program: bool) -> str:
    """Each text once, below the packages that have it."""
    shipped = SHIPPED if with_program else SHIPPED[:1]
    found = {f"{package['name']} {package['version']}": package for pair in shipped for package in linked(*pair)}
    lines, texts = [], dict[str, list[str]]()
    for name, package in sorted(found.items()):
        lines.append(f"{name}: {package['license']}" + (f", {package['repository']}" if package["repository"] else ""))
        folder = pathlib.Path(package["manifest_path"]).parent
        files = [
            path for path in sorted(folder.iterdir()) if re.match("licen[cs]e|copying|copyright|notice", path.name, re.I) and path.is_file()
        ]
        for text in [path.read_text("utf-8", "replace").strip() for path in files] or ["(no file with the text of the licence)"]:
            texts.setdefault(text, []).append(name)
    lines.append("Rust's standard library: MIT OR Apache-2.0, https://github.com/rust-lang/rust\n")
    bodies = [f"{'-' * 80}\n{', '.join(names)}\n\n{text}\n" for text, names in texts.items()]
    return "\n".join(["The compiled parts of the package trueio have code of these packages.\n", *lines, *bodies])


if __name__ == "__main__":
    sys.stdout.write(notices(with_program=True))
