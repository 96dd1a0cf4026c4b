//! What the unwind table says about functions: where they begin and end, and whether a call enters
//! them there.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian,
    RegisterRule, UnwindContext, UnwindSection, X86_64,
};
use object::{Object, ObjectSection};

use crate::image::{ADDRESS_MAX, Elf, Image};

type Bytes<'f> = EndianSlice<'f, LittleEndian>;

/// What the first row of an entry says about the code that begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// The code was just called: the frame ends 8 above rsp, and its last word is the return address.
    Called,
    /// Another frame: a part of a function, or code that is not entered by a call.
    Other,
    /// No caller: the outermost frame.
    Outermost,
    /// The frame of a signal's return.
    Signal,
}

/// One entry: a function, or a part of one.
#[derive(Debug, Clone)]
pub(crate) struct Frame<'f> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) beginning: Beginning,
    entry: FrameDescriptionEntry<Bytes<'f>>,
}

/// The frame's end at some instructions of a function: `offset` above a register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Number of the register in unwind tables.
    pub(crate) register: u16,
    pub(crate) offset: i64,
}

/// All entries, sorted by their start.
pub(crate) struct Frames<'f> {
    pub(crate) all: Vec<Frame<'f>>,
    section: EhFrame<Bytes<'f>>,
    bases: BaseAddresses,
}

impl<'f> Frames<'f> {
    /// Those of `.eh_frame` that describe code of `image`.
    pub(crate) fn of(elf: &Elf<'f>, image: &Image<'f>) -> Self {
        let section = elf.section_by_name(".eh_frame");
        let bytes = section.as_ref().and_then(|section| section.data().ok());
        let at = section.as_ref().map_or(0, ObjectSection::address);
        let text = elf.section_by_name(".text");
        let mut frames = Self {
            all: Vec::new(),
            section: EhFrame::new(bytes.unwrap_or_default(), LittleEndian),
            bases: BaseAddresses::default()
                .set_eh_frame(at)
                .set_text(text.map_or(0, |text| text.address())),
        };
        frames.read(image);
        frames.all.sort_by_key(|frame| frame.start);
        frames
    }

    fn read(&mut self, image: &Image<'f>) {
        let mut context = UnwindContext::new();
        let mut entries = self.section.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else {
                continue;
            };
            let (start, end) = (entry.initial_address(), entry.end_address());
            if start < end && end <= ADDRESS_MAX && image.is_code(start) {
                let beginning = self.beginning(&entry, &mut context);
                self.all.push(Frame {
                    start,
                    end,
                    beginning,
                    entry,
                });
            }
        }
    }

    fn beginning(
        &self,
        entry: &FrameDescriptionEntry<Bytes<'f>>,
        context: &mut UnwindContext<usize>,
    ) -> Beginning {
        const RSP: u16 = 7;
        if entry.cie().is_signal_trampoline() {
            return Beginning::Signal;
        }
        let Ok(mut rows) = entry.rows(&self.section, &self.bases, context) else {
            return Beginning::Other;
        };
        let Ok(Some(row)) = rows.next_row() else {
            return Beginning::Other;
        };
        let is_called = matches!(
            row.cfa(),
            CfaRule::RegisterAndOffset { register, offset: 8 } if register.0 == RSP
        );
        match row.register(X86_64::RA) {
            RegisterRule::Undefined => Beginning::Outermost,
            RegisterRule::Offset(-8) if is_called => Beginning::Called,
            _ => Beginning::Other,
        }
    }

    /// The entry that `at` lies in.
    pub(crate) fn around(&self, at: u64) -> Option<&Frame<'f>> {
        let after = self.all.partition_point(|frame| frame.start <= at);
        let frame = self.all.get(after.checked_sub(1)?)?;
        (at < frame.end).then_some(frame)
    }

    /// The rows of an entry whose frame's end is counted from a register.
    pub(crate) fn rows(&self, frame: &Frame<'f>) -> Vec<Row> {
        let mut context = UnwindContext::new();
        let mut found = Vec::new();
        let Ok(mut rows) = frame.entry.rows(&self.section, &self.bases, &mut context) else {
            return found;
        };
        while let Ok(Some(row)) = rows.next_row() {
            if let CfaRule::RegisterAndOffset { register, offset } = row.cfa() {
                found.push(Row {
                    start: row.start_address(),
                    end: row.end_address(),
                    register: register.0,
                    offset: *offset,
                });
            }
        }
        found
    }
}
