# The steps of --full.

step_models() { ring_with loom 'test(/^loom_/)'; }

step_handlers() { ring_with steps 'test(/^(steps|span_steps)::/)'; }

step_mutants() { tests/mutants/run; }

# The tests that tests/full.tsv has for a step.
run_left() { run_tests --profile full --filterset "$(left_to "$1")"; }

step_documents() { cargo build --quiet --locked --release --package ringmark --examples && run_left documents; }

step_builds() { run_left builds; }

# With --allow-missing it is left out where the other processor's compiler and emulator cannot be installed.
step_arm() {
    ((!allow_missing || EUID == 0)) || { echo "program qemu-aarch64" >>"$RINGMARK_SKIP_LOG"; return 0; }
    tests/steps/arm
}

step_browser() {
    tools_of_browser
    command -v chromium >/dev/null || { ((EUID == 0)) && command -v apt-get >/dev/null &&
        apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || echo "there is no chromium here"
    run_left browser
}

# Debian's package starts a server: only the tool is taken.
step_alerts() {
    if ! command -v promtool >/dev/null && command -v apt-get >/dev/null; then
        local from=$target/tools/prometheus
        mkdir -p "$from" "$target/tools/bin"
        (cd "$from" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb .) >/dev/null 2>&1 &&
            mv "$from/usr/bin/promtool" "$target/tools/bin/" || echo "promtool cannot be had here"
        rm -rf "$from"
    fi
    run_left alerts
}

# Those of another step are not run once more.
step_sizes() {
    case $1 in
        ring) run_tests --profile full --filterset 'package(ringmark-ring)' && step_handlers ;;
        fleet) step_fleet && step_query ;;
        *)
            local others
            others="$(left_to documents) | $(left_to builds) | $(left_to browser) | $(left_to alerts)"
            run_tests --profile full --filterset "package(ringmark-tests) & binary($1) & not ($others)"
            ;;
    esac
}

deny_in() {
    local manifest=$1
    shift
    cargo deny --locked --all-features --config deny.toml --manifest-path "$manifest" check "$@"
}

step_deny() {
    local status=0 manifest
    if ! find_deny; then
        echo "cargo-deny cannot be installed: cargo install --locked cargo-deny"
        ((allow_missing)) || return 1
        echo "program cargo-deny" >>"$RINGMARK_SKIP_LOG"
        return 0
    fi
    for manifest in Cargo.toml fleet/Cargo.toml query/Cargo.toml; do
        deny_in "$manifest" --hide-inclusion-graph bans licenses sources || status=1
    done
    # The database of advisories is a git repository: not every machine may reach it.
    if timeout 120 cargo deny fetch db >/dev/null 2>&1; then
        for manifest in Cargo.toml fleet/Cargo.toml query/Cargo.toml; do
            deny_in "$manifest" --disable-fetch advisories || status=1
        done
    else
        echo "cargo deny check advisories: the database cannot be fetched from here" >>"$RINGMARK_SKIP_LOG"
    fi
    return "$status"
}

# As cargo-fuzz builds and runs them, without cargo-fuzz; `cargo fuzz run TARGET` works as well.
FUZZ_FLAGS="-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks
    -Ccodegen-units=1 --cfg fuzzing"

fuzz_target() {
    local name=$1 seconds=$2 found=$target/fuzz/corpus/$1 log=$target/fuzz/$1.log seeds
    seeds=("fuzz/corpus/$name")
    [[ $name != dump_blocks ]] || seeds+=(format-spec/vectors/v1)
    mkdir -p "$found" "$target/fuzz/artifacts"
    if ! "$target/fuzz/x86_64-unknown-linux-gnu/release/$name" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=256 \
        -print_final_stats=1 -artifact_prefix="$target/fuzz/artifacts/$name-" \
        "$found" "${seeds[@]}" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $name: the input is kept in $target/fuzz/artifacts, the log in $log"
        return 1
    fi
    awk -v name="$name" '/cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
        /number_of_executed_units/ { runs = $2 } /peak_rss_mb/ { rss = $2 }
        END { printf "%s: %d executions, %d edges covered, %d MB at most\n", name, runs, cov, rss
              exit !(runs > 0 && cov > 0) }' "$log"
}

step_fuzz() {
    local seconds=60 name status=0
    if ! command -v g++ >/dev/null && ((allow_missing)); then
        echo "program g++" >>"$RINGMARK_SKIP_LOG"
        return 0
    fi
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=${FUZZ_FLAGS//$'\n'/} CARGO_TARGET_DIR="$target/fuzz" \
        cargo build --quiet --locked --release --manifest-path fuzz/Cargo.toml \
        --target x86_64-unknown-linux-gnu || return 1
    for name in dump_blocks ring_image schema cli_patterns stream; do
        fuzz_target "$name" "$seconds" || status=1
    done
    return "$status"
}

# A crate with a lock file of its own, whose dependencies take minutes: clippy compiles its code for the tests, since
# `cargo clippy` would check each dependency once more. Warnings are errors, as with `-- -D warnings`.
lint_and_test() {
    local limit=45m
    [[ -z ${RINGMARK_LONG:-} ]] || limit=6h
    tools_of_fleet
    cargo fmt --check --manifest-path "$1/Cargo.toml" &&
        RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
            timeout --foreground --kill-after=10 "$limit" \
            cargo test --quiet --locked --no-fail-fast --manifest-path "$1/Cargo.toml" --target-dir "$target/$1"
}

step_fleet() { lint_and_test fleet; }

step_query() {
    query_can_be_built || return 0
    lint_and_test query
}

# With the features that docs.rs uses.
step_doc() {
    local features
    features=$(cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    for feature in ((package["metadata"] or {}).get("docs") or {}).get("rs", {}).get("features", []):
        print(package["name"] + "/" + feature, end=",")
') || return 1
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps --features "$features" &&
        links_are_found && docs/links "$target"/doc/ringmark*/
}

links_are_found() {
    local planted status=0
    planted=$(mktemp -d) || return 1
    echo '<h1 id="a"></h1><a href="#a">a</a><a href="#b">b</a><a href="none.html">none</a>' >"$planted/index.html"
    [[ $(docs/links "$planted" | wc -l) == 2 ]] || status=1
    rm -rf "$planted"
    ((status == 0)) || echo "docs/links does not find planted links"
    return "$status"
}

# Rivals stay out of the lock file, the downloads and the minutes of a test: the programs that need
# none of them are checked, and share their frame with the others.
step_benches() {
    benches/compare --document --check || return 1
    CARGO_TARGET_DIR="$target/rivals" cargo clippy --quiet --locked \
        --manifest-path benches/rivals/Cargo.toml --features floor,ours,queue -- -D warnings
}

step_packages() { packaging/crates/check && packages_long; }

# A fresh system, and builds from nothing: minutes. They need root, like what they test.
packages_long() {
    local name made status=0
    for name in dpkg-deb lintian debootstrap systemd-nspawn; do
        command -v "$name" >/dev/null && continue
        echo "packages: program $name" >>"$RINGMARK_SKIP_LOG"
        return 0
    done
    if ((EUID != 0)); then
        echo "packages: needs root" >>"$RINGMARK_SKIP_LOG"
        return 0
    fi
    made=$(mktemp -d) || return 1
    packaging/debian/build "$made" && packaging/debian/check "$made"/*.deb &&
        packaging/debian/boot "$made"/*.deb && upgrade "$made"/*.deb && packaging/crates/check --install --minimal || status=1
    rm -rf "$made"
    return "$status"
}

# There is no other version yet: this one under an earlier number.
upgrade() {
    local earlier=${1%/*}/earlier
    dpkg-deb --raw-extract "$1" "$earlier" && sed -i 's/^Version: .*/Version: 0.0.1/' "$earlier/DEBIAN/control" &&
        dpkg-deb -Zxz -z1 --root-owner-group --build "$earlier" "$earlier.deb" >/dev/null &&
        packaging/debian/upgrade "$earlier.deb" "$1"
}

step_release() {
    local name made status=0
    for name in dpkg-deb debootstrap unshare python3; do
        command -v "$name" >/dev/null && continue
        echo "release: program $name" >>"$RINGMARK_SKIP_LOG"
        return 0
    done
    if ((EUID != 0)); then
        echo "release: needs root" >>"$RINGMARK_SKIP_LOG"
        return 0
    fi
    made=$(mktemp -d) || return 1
    packaging/release "$made/dist" && packaging/check "$made/dist" || status=1
    rm -rf "$made"
    return "$status"
}
