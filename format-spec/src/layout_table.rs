//! The table of all layouts, which a test compares with `SPEC.md`.

use crate::attribute::AttributeHeader;
use crate::block::{BlockHeader, Window};
use crate::counters::{CountersHeader, SlotCounters};
use crate::ending::EndingBlock;
use crate::function::{FunctionEntry, FunctionTypesEntry, ModuleEntry, TracerEntry};
use crate::layout::StructLayout;
use crate::mailbox::MailboxHeader;
use crate::objects::{Footer, FooterEnd, FooterSession};
use crate::open_span::{Frame, OpenSpans, StackHeader};
use crate::page::PageHeader;
use crate::progress::{GoneRange, Progress, ProgressSlot};
use crate::removals::{Removals, Removed};
use crate::samples::{Sample, Samples};
use crate::schema::{EntryHeader, EventEntry, FieldEntry};
use crate::seen_waits::{SeenWait, SeenWaits};
use crate::session::{Extent, SessionHeader, SessionState};
use crate::slot::Slot;
use crate::store::{Index, IndexSlot, StoreId};
use crate::stream::{
    Ack, Hello, HostClock, HostClockSource, Ping, Pong, Refused, Resume, ResumeSlot, Welcome,
};
use crate::switches::{Switch, Switches};

/// Every struct of the format, in the order of `SPEC.md`.
#[must_use]
pub fn layout_table() -> [StructLayout; 49] {
    [
        SessionHeader::LAYOUT,
        SessionState::LAYOUT,
        Extent::LAYOUT,
        MailboxHeader::LAYOUT,
        Slot::LAYOUT,
        StackHeader::LAYOUT,
        Frame::LAYOUT,
        PageHeader::LAYOUT,
        EntryHeader::LAYOUT,
        EventEntry::LAYOUT,
        FieldEntry::LAYOUT,
        ModuleEntry::LAYOUT,
        FunctionEntry::LAYOUT,
        FunctionTypesEntry::LAYOUT,
        TracerEntry::LAYOUT,
        AttributeHeader::LAYOUT,
        BlockHeader::LAYOUT,
        Window::LAYOUT,
        EndingBlock::LAYOUT,
        OpenSpans::LAYOUT,
        Switches::LAYOUT,
        Switch::LAYOUT,
        SeenWaits::LAYOUT,
        SeenWait::LAYOUT,
        Samples::LAYOUT,
        Sample::LAYOUT,
        CountersHeader::LAYOUT,
        SlotCounters::LAYOUT,
        HostClock::LAYOUT,
        HostClockSource::LAYOUT,
        Progress::LAYOUT,
        ProgressSlot::LAYOUT,
        GoneRange::LAYOUT,
        Hello::LAYOUT,
        Welcome::LAYOUT,
        Refused::LAYOUT,
        Resume::LAYOUT,
        ResumeSlot::LAYOUT,
        Ack::LAYOUT,
        Ping::LAYOUT,
        Pong::LAYOUT,
        StoreId::LAYOUT,
        Index::LAYOUT,
        IndexSlot::LAYOUT,
        Footer::LAYOUT,
        FooterSession::LAYOUT,
        FooterEnd::LAYOUT,
        Removals::LAYOUT,
        Removed::LAYOUT,
    ]
}
