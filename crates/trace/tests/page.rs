//! The page of the format says what the code does.

use loadstone_trace::{Op, flag, formats};

#[test]
fn codes_flags_and_formats_are_those_of_the_page() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/formats/trace.md"
    ))
    .unwrap();
    for op in Op::ALL {
        assert!(page.contains(&format!("`{}` {}", *op as u8, op.name())), "{}", op.name());
    }
    for (bit, name) in flag::NAMES.iter().enumerate() {
        assert!(page.contains(&format!("| {bit} | {} | {name} |", 1 << bit)), "{name}");
    }
    for (name, _) in formats::titles() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn frozen_codes_do_not_move() {
    // Files written by earlier builds rest on these numbers.
    let codes: Vec<u8> = Op::ALL.iter().map(|&op| op as u8).collect();
    let expected: Vec<u8> = (0..4).chain(16..41).chain(64..68).chain(80..83).collect();
    assert_eq!(codes, expected);
    assert_eq!((flag::SYNC, flag::FUA, flag::PREFLUSH), (1, 2, 128));
    assert!(Op::ALL.iter().all(|&op| Op::from_code(op as u8) == Some(op)));
}
