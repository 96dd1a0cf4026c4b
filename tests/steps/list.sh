# The steps of ./test, in their order, and what each is.

EVERYDAY=(tools fmt style clippy build unit system loom)

# `.ci/run` runs some of these after the others: those first that have not passed for longest. None may take longer
# than 50 minutes, but the last: it takes hours, and is for a person to run.
FULL=(doc deny models handlers mutants documents builds arm browser alerts packages release benches fuzz fleet query
    sizes-ring sizes-attach sizes-export sizes-functions sizes-hostile sizes-profile sizes-record sizes-screens sizes-session
    sizes-store sizes-stream sizes-fleet)
HOURS=sizes-fleet

about() {
    case $1 in
        tools) echo "programs that tests need (installed with apt-get when run as root on Debian)" ;;
        fmt) echo "cargo fmt --check" ;;
        style) echo "the rules of this repository that a program can check (tests/style), in seconds" ;;
        clippy) echo "cargo clippy, warnings are errors" ;;
        build) echo "what the tests run, optimised: the command, the shared objects, the traced programs" ;;
        unit) echo "unit and integration tests of every crate, with debug assertions, and those in documentation" ;;
        system) echo "whole-system tests (tests/): they trace the code that users run" ;;
        loom) echo "the protocol under every interleaving of its memory orderings: two models, discard and overwrite" ;;
        doc) echo "cargo doc, warnings are errors" ;;
        deny) echo "cargo deny check: licences, sources and versions of dependencies; advisories where they can be had" ;;
        models) echo "every model of the protocol" ;;
        handlers) echo "a signal handler at every step of the real writer" ;;
        mutants) echo "bugs planted in a copy of the checkout: the test that each names finds it" ;;
        documents) echo "every block of README.md, the guide and the examples, run and compared" ;;
        builds) echo "tests that build inside: with other flags, other options, programs of the distribution" ;;
        arm) echo "the same for aarch64: cross-built, unit tests emulated and on an arm64 kernel, files that go both ways" ;;
        browser) echo "pages and traces in a browser, installed if it can be had" ;;
        alerts) echo "names of figures, and days of alert rules in fast motion, by Prometheus' own tool if it can be had" ;;
        packages) echo "every crate for the registry can be packed and installed; the Debian package in a booted system" ;;
        release) echo "all of a release, and its package and archive in fresh systems without compilers and network" ;;
        benches) echo "what benches/compare runs, but rivals that must be fetched; PERFORMANCE.md is as recorded" ;;
        fuzz) echo "libFuzzer with ASan over everything that comes from outside, 60 s per target" ;;
        fleet) echo "the crate that needs Arrow and speaks with clouds: warnings are errors, and its tests" ;;
        query) echo "the same for the crate that has SQL; it needs a newer Rust, and is left out with an older one" ;;
        sizes-ring) echo "the tests of the ring at full size" ;;
        sizes-fleet) echo "those of fleet and query at full size: hours" ;;
        sizes-*) echo "tests/${1#sizes-} at full size, with what everyday leaves out there" ;;
    esac
}
