#!/bin/sh
# Sources from the archive of the distribution that this machine runs: of Lua 5.4 into
# DIRECTORY/lua, or of SQLite, made one file, and its speed test into DIRECTORY/sqlite. apt gets a
# configuration of its own; the system's is only read. Exit 3, with a line of reason, where there is
# none.
set -u

case "$#:${2-}" in
2:lua) package=lua5.4 needed= ;;
2:sqlite) package=sqlite3 needed='tclsh make gcc' ;;
*) echo "usage: fetch.sh DIRECTORY lua|sqlite" >&2; exit 2 ;;
esac
[ -d "$1/$2" ] && exit 0
cannot() { echo "no sources of $package: $1" >&2; exit 3; }
for program in apt-get dpkg-source $needed; do
    command -v "$program" >/dev/null || cannot "no $program"
done

mkdir -p "$1" || cannot "no directory $1"
work=$(mktemp -d "$1/fetch.XXXXXX") || cannot "no directory in $1"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/src" "$work/done"

# Whatever archive of the distribution itself the system installs from, as an archive of sources.
etc=/etc/apt
parts=$(ls "$etc"/sources.list.d/*.sources 2>/dev/null)
lists=$(ls "$etc/sources.list" "$etc"/sources.list.d/*.list 2>/dev/null)
[ -z "$parts" ] || awk 'BEGIN { RS = ""; ORS = "\n\n" } /URIs:[^\n]*\/(debian|ubuntu)/' $parts |
    sed 's/^Types:.*/Types: deb-src/' >"$work/own.sources"
[ -z "$lists" ] || sed -n '/^deb .*\/\(debian\|ubuntu\)/s/^deb /deb-src /p' $lists >"$work/own.list"
[ -s "$work/own.sources" ] || [ -s "$work/own.list" ] || cannot "the system names no archive"
mkdir "$work/parts"
for list in "$work/own.sources" "$work/own.list"; do
    [ -s "$list" ] && mv "$list" "$work/parts/"
done

apt() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/parts" \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root \
        -o APT::Update::Error-Mode=any -o Acquire::Retries=0 -o Acquire::http::Timeout=5 \
        -o Acquire::https::Timeout=5 "$@"
}
apt update >"$work/log" 2>&1 || cannot "apt-get update: $(tail -n 1 "$work/log")"
cd "$work/src" || cannot "no directory $work/src"
apt source "$package" >"$work/log" 2>&1 || cannot "apt-get source: $(tail -n 1 "$work/log")"
cd "$package"-*/ || cannot "the archive holds no directory"

case $2 in
lua)
    cp src/*.[ch] "$work/done/" || cannot "no src/*.c"
    rm -f "$work/done/luac.c"
    # Made by the distribution's rules: where modules lie. None is loaded.
    echo '#define DEB_HOST_MULTIARCH ""' >"$work/done/lua5.4-deb-multiarch.h"
    ;;
sqlite)
    { ./configure --disable-readline && make sqlite3.c; } >"$work/log" 2>&1 ||
        cannot "sqlite3.c is not made: $(tail -n 1 "$work/log")"
    cp sqlite3.c sqlite3.h test/speedtest1.c "$work/done/" || cannot "no sqlite3.c"
    ;;
esac
# Whoever comes second finds a directory there.
mv -T "$work/done" "$1/$2" 2>/dev/null || [ -d "$1/$2" ] || cannot "$1/$2 cannot be written"
