//! Numbers of the fields that are written, by message, as Perfetto's `.proto` files have them.

pub(super) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

pub(super) mod packet {
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const FIRST_ON_SEQUENCE: u32 = 87;
    pub(crate) const TASK_STATE: u32 = 117;
}

pub(super) mod defaults {
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    /// In the defaults of track events.
    pub(crate) const TRACK_UUID: u32 = 11;
}

pub(super) mod clocks {
    pub(crate) const CLOCK: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    /// In a clock.
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const IS_INCREMENTAL: u32 = 3;
}

pub(super) mod interned {
    pub(crate) const CATEGORY: u32 = 1;
    pub(crate) const EVENT_NAME: u32 = 2;
    pub(crate) const ANNOTATION_NAME: u32 = 3;
    /// In each of them.
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}

pub(super) mod event {
    pub(crate) const CATEGORY_IID: u32 = 3;
    pub(crate) const ANNOTATION: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const FLOW_ID: u32 = 47;

    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

pub(super) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UINT: u32 = 3;
    pub(crate) const INT: u32 = 4;
    pub(crate) const DOUBLE: u32 = 5;
    pub(crate) const STRING: u32 = 6;
    pub(crate) const POINTER: u32 = 7;
    pub(crate) const ARRAY: u32 = 12;
}

pub(super) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
}

pub(super) mod process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const NAME: u32 = 6;
    pub(crate) const LABEL: u32 = 8;
}

pub(super) mod thread {
    pub(crate) const PID: u32 = 1;
    pub(crate) const TID: u32 = 2;
    pub(crate) const NAME: u32 = 5;
}

pub(super) mod task {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const TID: u32 = 3;
    pub(crate) const STATE: u32 = 4;

    pub(crate) const RUNNABLE: u64 = 2;
    pub(crate) const RUNNING: u64 = 3;
    pub(crate) const SLEEPS: u64 = 4;
    pub(crate) const STOPPED: u64 = 6;
    pub(crate) const DESTROYED: u64 = 8;
}

pub(super) mod counter {
    pub(crate) const UNIT_NAME: u32 = 6;
}
