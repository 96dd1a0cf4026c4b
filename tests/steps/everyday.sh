# The steps of every day.

# Both steps of tests have the same packages and features: what they share is built once.
TESTED=(--locked --workspace --exclude ringmark-style --exclude ringmark-benches --exclude ringmark-examples
    --features ringmark/bytemuck,ringmark-decoder/bytemuck)

# The filter of the tests that a step of --full runs; without a step, of all that are left to it.
left_to() {
    awk -F '\t' -v step="${1:-}" '/^[^#]/ && (step == "" || $1 == step) { filter = filter " | (" $2 ")" }
        END { print "(none()" filter ")" }' tests/full.tsv
}

run_tests() {
    cargo nextest run --cargo-quiet "${TESTED[@]}" --tests "$@"
}

step_fmt() { cargo fmt --all --check; }

step_style() { cargo test --quiet --locked --no-fail-fast -p ringmark-style && spelling && other_locks; }

# These have lock files of their own: a dependency of a crate they use changes them too.
other_locks() {
    local crate
    for crate in fleet fuzz query; do
        [[ $crate != query ]] || query_can_be_built || continue
        cargo metadata --locked --format-version 1 --manifest-path "$crate/Cargo.toml" >/dev/null || return 1
    done
}

# What users read. JSON.md shows a setting with a mistake; two sources have halves of words; some versions of
# codespell do not know crates.
spelling() {
    if ! command -v codespell >/dev/null; then
        echo "spelling: program codespell" >>"$RINGMARK_SKIP_LOG"
        return 0
    fi
    if codespell - <<<"rec""ieve" >/dev/null; then
        echo "codespell does not find a planted mistake"
        return 1
    fi
    codespell --ignore-words-list crate,overwite,fo,inflight,keypair,matchs,ratatui ./*.md docs examples format-spec/*.md c-api/include \
        {attach,collector,console,decoder,export,producer,reader,stream,tools}/src
}

step_clippy() {
    cargo clippy --quiet --locked --workspace --all-targets \
        --features ringmark/bytemuck,ringmark-decoder/bytemuck -- -D warnings
}

step_build() { tests/steps/build; }

# Tests in documentation stay with cargo: rustdoc has them all in one program.
step_unit() {
    local status=0
    run_tests --filterset "not package(ringmark-tests) & not $(left_to)" || status=1
    cargo test --quiet "${TESTED[@]}" --doc || status=1
    return "$status"
}

# Most of these wait for programs: more of them than processors.
step_system() { run_tests --filterset "package(ringmark-tests) & not $(left_to)" --test-threads $(($(nproc) * 3 / 2)); }

# Tests of the ring with a cfg for all of it, in a target directory of its own.
ring_with() {
    local cfg=$1
    shift
    RUSTFLAGS="${RUSTFLAGS:-} --cfg $cfg" CARGO_TARGET_DIR="$target/$cfg" \
        cargo nextest run --cargo-quiet --locked --release --profile full -p ringmark-ring --test all --filterset "$@"
}

step_loom() { ring_with loom 'test(/^loom_(discard|overwrite)::/)'; }
