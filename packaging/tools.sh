# What packaging/release needs beside a compiler, sourced by it: `target` is where Cargo builds.

# The oldest C library that the binaries run with.
OLDEST_GLIBC=2.28
ZIGBUILD=0.24.1
ZIG=0.14.1
CYCLONEDX=0.5.9

export PYTHONPATH=$target/tools/release${PYTHONPATH:+:$PYTHONPATH}
PATH=$target/tools/release/bin:$target/tools/bin:$PATH

need_release_tools() {
    local name
    for name in cargo gcc readelf objcopy strip dpkg-deb python3 gzip; do
        command -v "$name" >/dev/null || fail "program $name: not found; on Debian it is in gcc, binutils, dpkg or python3"
    done
    if [[ $(cargo-zigbuild --version 2>/dev/null) != *" $ZIGBUILD" || $(python3 -m ziglang version 2>/dev/null) != "$ZIG" ]]; then
        echo "installing: cargo-zigbuild $ZIGBUILD and zig $ZIG into $target/tools/release" >&2
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --upgrade --target "$target/tools/release" \
            "cargo-zigbuild==$ZIGBUILD" "ziglang==$ZIG" || fail "they cannot be had: pip says why"
    fi
    if [[ $(cargo cyclonedx --version 2>/dev/null) != *" $CYCLONEDX" ]]; then
        echo "installing: cargo-cyclonedx $CYCLONEDX into $target/tools, a build of some minutes" >&2
        CARGO_TARGET_DIR=$target/tools/build cargo install --quiet --locked --root "$target/tools" \
            "cargo-cyclonedx@$CYCLONEDX" || fail "it cannot be had: cargo says why"
        rm -rf "$target/tools/build"
    fi
}
