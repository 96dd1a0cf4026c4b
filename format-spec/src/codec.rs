//! Codecs of containers: LZ4, and LZ4 behind a reversible filter of the records.
