//! Formats that are a column map: what a person would declare for `delimited`, declared here.
//!
//! Those that say reads and writes in letters, or have a header, are told from their content. Tables of
//! numbers alone are not: five columns of numbers may be any of several formats, whose polarities differ,
//! so they must be named.

use super::delimited::{fits, open_as};
use super::format::{Format, Known};
use crate::columns::{At, Column, Columns, Zero};

/// The tables, in the order they are asked.
pub static TABLES: &[&Format] =
    &[&SYSTOR, &HFPLAYER, &VSCSI_CSV, &DISKMON, &ALIBABA, &TENCENT, &MQSIM, &DISKSIM];

macro_rules! table {
    ($(#[$doc:meta])* $id:ident, $map:ident, $name:literal, $title:literal, $known:ident, $fields:literal, $header:expr) => {
        $(#[$doc])*
        static $id: Format = Format {
            name: $name,
            title: $title,
            extensions: &[],
            known: Known::$known,
            header: &$header,
            detect: |head, all| fits(&$map(), $fields, head, all),
            open: |inputs, options| open_as(&$map(), inputs, options),
        };
    };
}

table!(
    /// SYSTOR'17 (enterprise VDI): Unix seconds with nine decimals of which six mean anything, and a
    /// blank op here and there.
    SYSTOR, systor, "systor17", "SYSTOR'17 CSV (enterprise VDI)", Content, 6, []
);
table!(
    /// hfplayer's workload capture: the header names the columns, and their set varies.
    HFPLAYER, hfplayer, "hfplayer", "hfplayer WLC CSV", Content, 0, []
);
table!(
    /// The CSV that libCacheSim writes of vscsi traces.
    VSCSI_CSV, vscsi_csv, "vscsi-csv", "CloudPhysics vscsi as CSV", Content, 5, []
);
table!(
    /// DiskMon (Sysinternals), tab separated, with the service time.
    DISKMON, diskmon, "diskmon", "DiskMon text", Content, 0,
    ["seq|#|number", "time", "duration|duration s", "disk", "request|type", "sector", "length"]
);
table!(
    /// Alibaba's block traces of 2020.
    ALIBABA, alibaba, "alibaba", "Alibaba block traces 2020", Content, 5,
    ["device_id|device|volume_id", "opcode|op|type", "offset", "length|size", "timestamp|time"]
);
table!(
    /// Tencent's Cloud Block Storage: whole seconds, sectors, 0 reads.
    TENCENT, tencent, "tencent", "Tencent CBS", Name, 5,
    ["timestamp|time", "offset", "size", "iotype|type|opcode", "volumeid|volume_id"]
);
table!(
    /// MQSim and SSDsim: nanoseconds, sectors, **1 reads**.
    MQSIM, mqsim, "mqsim", "MQSim, SSDsim", Name, 5,
    ["time|arrival_time|timestamp", "device|device_number", "lba|address|sector", "size|sectors", "type|op|opcode"]
);
table!(
    /// DiskSim's ASCII input: milliseconds, blocks, bit 0 of the flags reads.
    DISKSIM, disksim, "disksim", "DiskSim ascii", Name, 5,
    ["time|timestamp", "device|devno", "blkno|block", "size|bcount", "flags"]
);

fn at(position: usize, unit: &str) -> Option<Column> {
    Some(Column { at: At::Position(position), unit: unit.into() })
}

fn named(name: &str, unit: &str) -> Option<Column> {
    Some(Column { at: At::Name(name.into()), unit: unit.into() })
}

fn values(
    reads: &[&str],
    writes: &[&str],
    ignore: &[&str],
) -> std::collections::BTreeMap<String, Vec<String>> {
    let list = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    [("read", reads), ("write", writes), ("ignore", ignore)]
        .into_iter()
        .map(|(op, values)| (op.to_string(), list(values)))
        .collect()
}

fn systor() -> Columns {
    Columns {
        origin: Zero::Epoch,
        time: named("Timestamp", "s"),
        latency: named("Response", "s"),
        op: named("IOType", ""),
        object: named("LUN", ""),
        offset: named("Offset", "byte"),
        size: named("Size", "byte"),
        values: values(&["R"], &["W"], &[""]),
        ..Columns::default()
    }
}

fn hfplayer() -> Columns {
    Columns {
        time: named("ELAPSED_USECS.D", "us"),
        latency: named("LATENCY_USECS.D", "us"),
        op: named("OP.I", ""),
        object: named("LUN_SSID.I", ""),
        actor: named("HOST_ID.I", ""),
        offset: named("LBA.I", "sector"),
        size: named("NBLKS.I", "sector"),
        values: values(&["0"], &["1"], &[]),
        optional: &["actor"],
        ..Columns::default()
    }
}

fn vscsi_csv() -> Columns {
    Columns {
        time: named("time", "s"),
        op: named("op", ""),
        size: named("size", "byte"),
        offset: named("lbn", "sector"),
        values: values(
            &["8", "08", "28", "88", "a8"],
            &["a", "0a", "2a", "2e", "8a", "8e", "89", "aa", "ae"],
            &[],
        ),
        ..Columns::default()
    }
}

fn diskmon() -> Columns {
    Columns {
        separator: "tab".into(),
        time: at(1, "s"),
        latency: at(2, "s"),
        object: at(3, ""),
        op: at(4, ""),
        offset: at(5, "sector"),
        size: at(6, "sector"),
        values: values(&["Read"], &["Write"], &[]),
        ..Columns::default()
    }
}

fn alibaba() -> Columns {
    Columns {
        origin: Zero::Epoch,
        object: at(0, ""),
        op: at(1, ""),
        offset: at(2, "byte"),
        size: at(3, "byte"),
        time: at(4, "us"),
        values: values(&["R"], &["W"], &[]),
        ..Columns::default()
    }
}

fn tencent() -> Columns {
    Columns {
        origin: Zero::Epoch,
        time: at(0, "s"),
        offset: at(1, "sector"),
        size: at(2, "sector"),
        op: at(3, ""),
        object: at(4, ""),
        values: values(&["0"], &["1"], &[]),
        ..Columns::default()
    }
}

fn mqsim() -> Columns {
    Columns {
        separator: "blank".into(),
        origin: Zero::Start,
        time: at(0, "ns"),
        object: at(1, ""),
        offset: at(2, "sector"),
        size: at(3, "sector"),
        op: at(4, ""),
        values: values(&["1"], &["0"], &[]),
        whole_times: true,
        ..Columns::default()
    }
}

fn disksim() -> Columns {
    let flags = |bit: u32| (0..64).filter(move |n| n & 1 == bit).map(|n: u32| n.to_string()).collect();
    Columns {
        separator: "blank".into(),
        origin: Zero::Start,
        time: at(0, "ms"),
        object: at(1, ""),
        offset: at(2, "sector"),
        size: at(3, "sector"),
        op: at(4, ""),
        values: [("read".to_string(), flags(1)), ("write".to_string(), flags(0))].into(),
        ..Columns::default()
    }
}
