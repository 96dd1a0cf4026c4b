//! The environment variables that traced programs read, each with what it does, for the reference. A program with
//! more rights than its caller reads none of them.

/// An environment variable, as reference and manual pages show it.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name, or names that belong together.
    pub name: &'static str,
    /// What happens without it.
    pub default: &'static str,
    /// The effect.
    pub effect: &'static str,
}

/// The variables that a traced program reads.
pub const VARIABLES: [Variable; 8] = [
    Variable {
        name: "RINGMARK",
        default: "not traced",
        effect: "How a program is traced: `1`, or keys and values such as \
            `mode=discard,ring=1M,keep=always`.",
    },
    Variable {
        name: "RINGMARK_FILTER",
        default: "all events on",
        effect: "Which events are on at the start: `LEVEL` and `TARGET=LEVEL`, comma separated, for \
            example `info,hyper=debug`; with `order[id=42]=debug` inside such spans only. Levels: \
            `off`, `error`, `warn`, `info`, `debug`, `trace`.",
    },
    Variable {
        name: "RINGMARK_TAGS",
        default: "none",
        effect: "Texts `key=value`, comma separated. They are stored with the session, and so in \
            every trace file of it.",
    },
    Variable {
        name: "RINGMARK_DIR",
        default: "`/dev/shm/ringmark-UID`",
        effect: "Directory of ring files. Programs and tools must agree on it. It must belong to \
            you, and no other user may write to it. Tools that run as root look into the \
            directories of all users, unless it is set.",
    },
    Variable {
        name: "RINGMARK_VERBOSE",
        default: "silent",
        effect: "`1`: the program prints why it is not traced.",
    },
    Variable {
        name: "RINGMARK_TRACE",
        default: "no tracer",
        effect: "Function tracers to start with the program. `ringmark run --kind` sets it, \
            together with `LD_PRELOAD`.",
    },
    Variable {
        name: "OTEL_SERVICE_NAME",
        default: "none",
        effect: "Name of the service, stored with the session. A collector's store has a directory \
            for each service.",
    },
    Variable {
        name: "OTEL_RESOURCE_ATTRIBUTES",
        default: "none",
        effect: "`service.name`, if the variable above is not set, and `service.version`. Nothing \
            else of it is stored.",
    },
];
