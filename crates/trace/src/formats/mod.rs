//! One file per format and the one table they are registered in.

use tables::TABLES;

pub mod blktrace;
pub mod dataseries;
pub mod delimited;
pub mod fiu;
mod format;
pub mod iolog;
pub mod msr;
pub mod nfs;
pub mod oracle;
pub mod parquet;
pub mod spc;
pub mod srt;
pub mod strace;
mod tables;
pub mod vscsi;

pub use format::{Format, Known, Opened, Source, head_lines, single};

/// Formats with a reader of their own; detection asks in this order, the strictest first, then [`TABLES`].
static READERS: &[&Format] = &[
    &blktrace::FORMAT,
    &srt::FORMAT,
    &dataseries::FORMAT,
    &nfs::pcap::FORMAT,
    &nfs::pcapng::FORMAT,
    &vscsi::FORMAT,
    &msr::FORMAT,
    &spc::FORMAT,
    &iolog::FORMAT,
    &fiu::FORMAT,
    &nfs::dump::FORMAT,
    &strace::FORMAT,
    &blktrace::text::BLKPARSE,
    &blktrace::text::TRACEFS,
    &oracle::FORMAT,
    &delimited::FORMAT,
];

/// Every format but Parquet, in the order detection asks.
pub fn all() -> impl Iterator<Item = &'static Format> {
    READERS.iter().chain(TABLES).copied()
}

/// The names `--format` takes and what they are.
pub fn titles() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|f| (f.name, f.title)).chain([("parquet", "Loadstone's own Parquet")])
}

/// The name of one of the tables, counted around.
#[doc(hidden)]
pub fn table(number: usize) -> &'static str {
    TABLES[number % TABLES.len()].name
}

/// The format of this name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    all().find(|f| f.name == name)
}
