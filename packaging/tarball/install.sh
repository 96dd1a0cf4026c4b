#!/bin/sh
# Installs Ringmark from the unpacked archive that has this file, and removes it. See --help.
set -eu

usage() {
    cat <<'TEXT'
usage: ./install.sh [PREFIX]
       ./install.sh --uninstall [PREFIX]

Installs the commands, libraries, headers, units and documents below PREFIX: /usr/local
as root, ~/.local otherwise. No unit is started. Running programs keep the version that
they have; another version that was installed there before is replaced.

PREFIX/share/ringmark/installed lists the files. --uninstall removes these, and leaves
traces, stores and keys. It is in PREFIX/share/ringmark/install.sh, too.
TEXT
}

fail() { echo "install.sh: $1" >&2; exit 2; }

here=$(cd "$(dirname "$0")" && pwd)
uninstall=
prefix=
for word in "$@"; do
    case $word in
        -h | --help) usage; exit 0 ;;
        --uninstall) uninstall=1 ;;
        -*) fail "unknown option $word: --help lists the options" ;;
        *)
            [ -z "$prefix" ] || fail "found a second prefix $word, expected one"
            prefix=$word
            ;;
    esac
done
if [ -z "$prefix" ]; then
    prefix=${HOME:-}/.local
    [ "$(id -u)" != 0 ] || prefix=/usr/local
    # The copy that was installed knows where.
    [ ! -f "$here/installed" ] || prefix=${here%/share/ringmark}
fi
case $prefix in
    *[[:space:]\|\&]*) fail "PREFIX: found '$prefix', expected a path without spaces, | and &" ;;
    /*) ;;
    *) fail "PREFIX: found '$prefix', expected an absolute path" ;;
esac
list=$prefix/share/ringmark/installed

# Removes what the lines of $1 name: files, then folders, which end in / and may hold what is not ours.
remove_listed() {
    printf '%s\n' "$1" | sort -r | while read -r entry; do
        case $entry in
            '') ;;
            /* | *../*) fail "$list: found $entry, expected paths below $prefix" ;;
            */) rmdir "$prefix/$entry" 2>/dev/null || true ;;
            *) rm -f "$prefix/$entry" ;;
        esac
    done
}

# Makes a folder below PREFIX, and notes those that were not there: they go again with --uninstall.
make_folder() {
    [ ! -d "$prefix/$1" ] || return 0
    make_folder "$(dirname "$1")"
    mkdir "$prefix/$1"
    made="$made
$1/"
}

tell_loader() {
    [ "$(id -u)" != 0 ] || ! command -v ldconfig >/dev/null || ldconfig
}

if [ -n "$uninstall" ]; then
    [ -f "$list" ] || fail "$list: not there, so nothing was installed below $prefix by this script"
    listed=$(cat "$list")
    rm -f "$list"
    remove_listed "$listed"
    tell_loader
    echo "removed Ringmark from $prefix; traces, stores and keys are as they were"
    exit 0
fi

# What cannot run here says so, and why.
[ -x "$here/bin/ringmark" ] || fail "$here/bin/ringmark: not there; run install.sh in the unpacked archive"
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "this system: found $(uname -s) on $(uname -m), expected Linux on x86_64"
if ! said=$("$here/bin/ringmark" --version 2>&1); then
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || glibc=
    [ -z "$glibc" ] || fail "bin/ringmark does not start with $glibc, expected glibc @GLIBC@ or newer: $said"
    for loader in /lib/ld-musl-*; do
        [ ! -e "$loader" ] || fail "the C library: found musl, expected glibc @GLIBC@ or newer. Ringmark does not run with musl: \
use a system or a container with glibc, such as Debian"
    done
    fail "bin/ringmark does not start: $said"
fi

mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || fail "$prefix: cannot be written; name another PREFIX, or run it as root"
before=
[ ! -f "$list" ] || before=$(cat "$list")
made=$(printf '%s\n' "$before" | grep '/$' || true)
cd "$here"
files=$(find bin lib include share ! -type d ! -path share/ringmark/installed | sort)
for file in $files; do make_folder "$(dirname "$file")"; done
# The list goes first: what is interrupted can be removed.
printf '%s\n' "$before" "$made" "$files" | sed '/^$/d' | sort -u >"$list"
for file in $files; do
    # A running program keeps the file that it has open: the new one is made beside it.
    new=$prefix/$file.ringmark-new
    cp -P "$file" "$new"
    case $file in
        *.pc | *.service) sed "s|/usr/local|$prefix|g" "$file" >"$new" ;;
    esac
    mv -f "$new" "$prefix/$file"
done
printf '%s\n' "$made" "$files" | sed '/^$/d' | sort -u >"$list.new"
remove_listed "$(printf '%s\n' "$before" | grep -vxF -f "$list.new" || true)"
mv -f "$list.new" "$list"
tell_loader

echo "installed $said in $prefix; remove it with $prefix/share/ringmark/install.sh --uninstall"
case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "$prefix/bin is not on PATH yet: export PATH=$prefix/bin:\$PATH" ;;
esac
