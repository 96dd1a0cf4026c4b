//! How a trace file is written, as options.

use clap::ValueEnum;
use ringmark_reader::record::RecordOptions;
use ringmark_reader::{Codec, Destination, Dump, Durability, Rotation};

use ringmark_console::Failure;
use ringmark_console::units::parse_size;

/// Options for the trace file of a recording.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct FileOptions {
    /// Start a new file when one reaches SIZE; the older ones are FILE.1, FILE.2, …
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    rotate: Option<u64>,
    /// Files that rotation keeps, including the one being written
    #[arg(long, value_name = "N", default_value_t = 2, requires = "rotate",
        value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Stop with exit code 1 when the file would get larger than SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "rotate")]
    max_size: Option<u64>,
    /// Give pages back to the program only when the disk has them, so that they outlive a power
    /// loss. What is still in a living ring file never does
    #[arg(long)]
    sync: bool,
    /// Compress pages
    #[arg(long, value_name = "CODEC")]
    compress: Option<Compression>,
    /// When the disk is full, wait for space instead of ending
    #[arg(long)]
    wait_for_space: bool,
}

/// Codecs by their names on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Compression {
    /// LZ4
    Lz4,
    /// LZ4 after a reversible filter of the records: smaller
    Delta,
}

impl FileOptions {
    /// Creates a file with these options.
    ///
    /// # Errors
    /// It cannot be created, or not with these options.
    pub(crate) fn create(&self, to: &Destination) -> anyhow::Result<Dump> {
        if self.rotate.is_some() && *to == Destination::Stdout {
            return Err(Failure::usage(
                "--rotate: standard output cannot be rotated, expected -o FILE",
            )
            .into());
        }
        if self.sync && *to == Destination::Stdout {
            return Err(Failure::usage(
                "--sync: it is not known when the disk has what went to standard output, expected -o FILE",
            )
            .into());
        }
        let durability = match self.sync {
            true => Durability::EachWrite,
            false => Durability::System,
        };
        let mut file =
            Dump::create(to, durability).map_err(|error| Failure::usage(error.to_string()))?;
        file.set_codec(self.codec());
        file.set_rotation(self.rotate.map(|bytes| Rotation {
            bytes,
            keep: self.keep,
        }));
        file.set_bytes_max(self.max_size);
        Ok(file)
    }

    /// The codec of pages.
    pub(crate) fn codec(&self) -> Codec {
        match self.compress {
            None => Codec::None,
            Some(Compression::Lz4) => Codec::Lz4,
            Some(Compression::Delta) => Codec::DeltaShuffleLz4,
        }
    }

    /// What the recorder is to know of these options.
    pub(crate) fn record_options(&self) -> RecordOptions {
        RecordOptions {
            wait_for_space: self.wait_for_space,
            ..RecordOptions::default()
        }
    }
}
