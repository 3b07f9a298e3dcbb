"""Adds the program to a wheel: `python scripts/with_program.py WHEEL PROGRAM FOLDER`.

maturin builds the library of `trueio.direct`; the program is built by cargo, and is static in a release, so one binary fits
the wheels for glibc and for musl. It is installed where scripts are (`*.data/scripts`), as a command. The wheel is packed anew
by the package `wheel`, which records checksums and uses SOURCE_DATE_EPOCH as the time of all files.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile


def main(wheel: str, program: str, folder: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", place, wheel], check=True, stdout=subprocess.DEVNULL)
        (unpacked,) = pathlib.Path(place).iterdir()
        scripts = unpacked / f"{unpacked.name}.data" / "scripts"
        scripts.mkdir(parents=True)
        shutil.copyfile(program, scripts / "trueio")
        (scripts / "trueio").chmod(0o755)
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", folder, str(unpacked)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
