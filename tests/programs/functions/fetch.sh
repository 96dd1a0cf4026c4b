#!/bin/sh
# Sources from the archive of the distribution that this machine runs: of Lua 5.4 into
# DIRECTORY/lua, of SQLite, made one file, and its shell into DIRECTORY/sqlite3, of hackbench into
# DIRECTORY/hackbench, or of its descendant in the kernel's perf (139 MB to fetch) into
# DIRECTORY/messaging, of Redis into DIRECTORY/redis. apt gets a configuration of its own; the system's is only read. Exit 3, with a
# line of reason, where there is none.
set -u

case "$#:${2-}" in
2:lua) package=lua5.4 needed= ;;
2:sqlite3) package=sqlite3 needed='tclsh make gcc' ;;
2:hackbench) package=rt-tests needed= ;;
2:messaging) package=linux-source needed=dpkg-deb ;;
2:redis) package=redis needed= ;;
*) echo "usage: fetch.sh DIRECTORY lua|sqlite3|hackbench|messaging|redis" >&2; exit 2 ;;
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

# Whatever archive of the distribution itself the system installs from, as an archive of sources. The
# kernel's are a package, too.
type=deb-src
[ "$2" != messaging ] || type=deb
etc=/etc/apt
parts=$(ls "$etc"/sources.list.d/*.sources 2>/dev/null)
lists=$(ls "$etc/sources.list" "$etc"/sources.list.d/*.list 2>/dev/null)
[ -z "$parts" ] || awk 'BEGIN { RS = ""; ORS = "\n\n" } /URIs:[^\n]*\/(debian|ubuntu)/' $parts |
    sed "s/^Types:.*/Types: $type/" >"$work/own.sources"
[ -z "$lists" ] || sed -n "/^deb .*\/\(debian\|ubuntu\)/s/^deb /$type /p" $lists >"$work/own.list"
[ -s "$work/own.sources" ] || [ -s "$work/own.list" ] || cannot "the system names no archive"
mkdir "$work/parts"
for list in "$work/own.sources" "$work/own.list"; do
    [ -s "$list" ] && mv "$list" "$work/parts/"
done

own="-o Dir::Cache=$work/cache -o Dir::State::Lists=$work/lists"
apt() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/parts" \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root \
        -o APT::Update::Error-Mode=any -o Acquire::Retries=0 -o Acquire::http::Timeout=5 \
        -o Acquire::https::Timeout=5 "$@"
}
apt update >"$work/log" 2>&1 || cannot "apt-get update: $(tail -n 1 "$work/log")"
cd "$work/src" || cannot "no directory $work/src"
if [ "$type" = deb ]; then
    # The newest kernel's: what the package stands for.
    package=$(apt-cache $own depends "$package" 2>/dev/null | sed -n 's/^ *Depends: //p' | head -n 1)
    apt download "$package" >"$work/log" 2>&1 || cannot "apt-get download: $(tail -n 1 "$work/log")"
    file=tools/perf/bench/sched-messaging.c
    dpkg-deb --fsys-tarfile ./*.deb | tar -xO --wildcards './usr/src/*.tar.xz' |
        tar -xJO --wildcards "*/$file" >"$work/done/sched-messaging.c" || cannot "no $file"
    rm -f ./*.deb
else
    apt source "$package" >"$work/log" 2>&1 || cannot "apt-get source: $(tail -n 1 "$work/log")"
    cd "$package"-*/ || cannot "the archive holds no directory"
fi

case $2 in
lua)
    cp src/*.[ch] "$work/done/" || cannot "no src/*.c"
    rm -f "$work/done/luac.c"
    # Made by the distribution's rules: where modules lie. None is loaded.
    echo '#define DEB_HOST_MULTIARCH ""' >"$work/done/lua5.4-deb-multiarch.h"
    ;;
sqlite3)
    { ./configure --disable-readline && make sqlite3.c shell.c; } >"$work/log" 2>&1 ||
        cannot "sqlite3.c is not made: $(tail -n 1 "$work/log")"
    cp sqlite3.c sqlite3.h shell.c "$work/done/" || cannot "no sqlite3.c"
    ;;
messaging)
    # What perf has for it is in sched_messaging.h.
    mkdir "$work/done/subcmd" "$work/done/linux"
    for header in subcmd/parse-options.h bench.h linux/time64.h; do
        : >"$work/done/$header"
    done
    ;;
redis)
    cp -R . "$work/done/" || cannot "nothing is copied"
    ;;
hackbench)
    cp src/hackbench/hackbench.c "$work/done/" || cannot "no src/hackbench/hackbench.c"
    ;;
esac
# The second to come finds a directory there.
mv -T "$work/done" "$1/$2" 2>/dev/null || [ -d "$1/$2" ] || cannot "$1/$2 cannot be written"
