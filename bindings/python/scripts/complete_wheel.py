"""Completes a wheel of maturin: `python scripts/complete_wheel.py WHEEL FOLDER [PROGRAM]`.

maturin builds the library of `trueio.direct`. This adds the licences of the crates in the compiled parts, and the program, which is built
by cargo, and is static in a release, so one binary fits the wheels for glibc and for musl. It is installed where scripts
are (`*.data/scripts`), as a command. The wheel is packed anew by the package `wheel`, which records checksums and uses
SOURCE_DATE_EPOCH as the time of all files.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from notices import notices

NOTICES = "THIRD-PARTY-LICENSES.txt"


def main(wheel: str, folder: str, program: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", place, wheel], check=True, stdout=subprocess.DEVNULL)
        (unpacked,) = pathlib.Path(place).iterdir()
        information = unpacked / f"{unpacked.name}.dist-info"
        (information / "licenses" / NOTICES).write_text(notices(with_program=program is not None), encoding="utf-8")
        # A file in that folder has an entry: PEP 639.
        metadata = information / "METADATA"
        before, entry, after = metadata.read_text(encoding="utf-8").partition("License-File: ")
        metadata.write_text(f"{before}License-File: {NOTICES}\n{entry}{after}", encoding="utf-8")
        if program is not None:
            scripts = unpacked / f"{unpacked.name}.data" / "scripts"
            scripts.mkdir(parents=True)
            shutil.copyfile(program, scripts / "trueio")
            (scripts / "trueio").chmod(0o755)
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", folder, str(unpacked)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
