#!/usr/bin/env bash
# Builds Ringmark's library for C and C++ and installs it; ./install installs everything. See --help.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: c-api/install.sh [--built DIR] PREFIX

Installs, below PREFIX:
  include/ringmark.h (and two headers that it includes)
  lib/libringmark.so, lib/libringmark.a
  lib/pkgconfig/ringmark.pc, lib/cmake/ringmark (target ringmark::ringmark)

  --built DIR   take libringmark_c.so and libringmark_c.a from there instead of building them

With DESTDIR everything goes below $DESTDIR/PREFIX, and ringmark.pc still says PREFIX.
TEXT
}

fail() { echo "install.sh: $1" >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
built=
prefix=
while (($#)); do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --built)
            (($# > 1)) || fail "--built: found no directory after it, expected one"
            built=$2
            shift
            ;;
        -*) fail "unknown option $1" ;;
        *)
            [[ -z $prefix ]] || fail "found a second prefix $1, expected one"
            prefix=$1
            ;;
    esac
    shift
done
[[ $prefix == /* ]] || fail "PREFIX: found '$prefix', expected an absolute path"
# The paths of ringmark.pc are separated by spaces.
[[ $prefix != *[[:space:]]* ]] || fail "PREFIX: found '$prefix', expected a path without spaces"

if [[ -z $built ]]; then
    target=${CARGO_TARGET_DIR:-$here/../target}
    cargo build --release --locked --manifest-path "$here/Cargo.toml" --target-dir "$target"
    built=$target/release
fi
for name in libringmark_c.so libringmark_c.a; do
    [[ -f $built/$name ]] || fail "$built/$name is not there"
done

version=$(sed -n 's/^version *= *"\(.*\)"/\1/p' "$here/../Cargo.toml" | head -n1)
root=${DESTDIR:-}$prefix
install -d "$root/include" "$root/lib/pkgconfig" "$root/lib/cmake/ringmark"
install -m 644 "$here"/include/ringmark*.h "$root/include/"
install -m 755 "$built/libringmark_c.so" "$root/lib/libringmark.so.0"
ln -sf libringmark.so.0 "$root/lib/libringmark.so"
install -m 644 "$built/libringmark_c.a" "$root/lib/libringmark.a"
strip "$root/lib/libringmark.so.0"
# Half of the library would be what LLVM alone could read, for a kind of linking that C programs do not use.
strip --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd "$root/lib/libringmark.a"
# fill FILE TO: a text in which the prefix and the version are set.
fill() {
    sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/$1" >"$root/lib/$2/${1%.in}"
    chmod 644 "$root/lib/$2/${1%.in}"
}
fill ringmark.pc.in pkgconfig
fill ringmark-config.cmake.in cmake/ringmark
fill ringmark-config-version.cmake.in cmake/ringmark
echo "installed libringmark $version in $root"
echo "C programs find it with -Wl,-rpath,$prefix/lib, unless the system searches $prefix/lib itself"
