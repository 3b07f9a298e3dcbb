#!/bin/sh
# Runs a Windows test program of this crate under Wine. For cargo:
#
#   CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/crates/direct/tests/wine/run.sh \
#       cargo test -p trueio-direct --target x86_64-pc-windows-gnu --lib --tests
#
# Needs wine and x86_64-w64-mingw32-gcc. Programs of Rust 1.78 or later look for a function in
# bcryptprimitives.dll that Wine 8 does not have; shim.c is built and placed next to the program.
# Wine wants no terminal on its input. A test program that takes three minutes is ended: it takes seconds on an idle machine.
set -eu
here=$(dirname "$(readlink -f "$0")")
folder=$(dirname "$1")
if [ ! -f "$folder/bcryptprimitives.dll" ]; then
    x86_64-w64-mingw32-gcc -shared -o "$folder/bcryptprimitives.dll.$$" "$here/shim.c" -ladvapi32
    mv "$folder/bcryptprimitives.dll.$$" "$folder/bcryptprimitives.dll"
fi
export WINEPREFIX="${WINEPREFIX:-$folder/wineprefix}" WINEDEBUG="${WINEDEBUG:--all}"
exec timeout --kill-after=10 180 wine "$@" </dev/null
