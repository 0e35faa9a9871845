//! Lines of text, whole and damaged.

use super::*;

#[test]
fn letters_say_the_kind_of_request() {
    let is = |rwbs: &[u8], expected: Category| assert_eq!(category(rwbs), Some(expected), "{}", quote(rwbs));
    is(b"R", Category::empty());
    is(b"RA", Category::AHEAD);
    is(b"WSM", Category::WRITE | Category::SYNC | Category::META);
    is(b"FWFSM", Category::FLUSH | Category::WRITE | Category::FUA | Category::SYNC | Category::META);
    is(b"FF", Category::FLUSH | Category::WRITE);
    is(b"DS", Category::WRITE | Category::DISCARD | Category::SYNC);
    is(b"N", Category::PC);
    assert_eq!(category(b""), None);
    assert_eq!(category(b"x"), None);
}

#[test]
fn tasks_may_have_blanks_and_hyphens_in_their_names() {
    let is = |head: &str, comm: &str, pid: u32| {
        assert_eq!(task(head.as_bytes()), Some((comm.as_bytes(), pid)), "{head}");
    };
    is("    kworker/u8:3-4656    [001] .....  1870.105845", "kworker/u8:3", 4656);
    is("   my-odd name-12 (   77) [000] ..s..  1.5", "my-odd name", 12);
    is("dd  4656 [001]  1870.105845", "dd", 4656);
    is("a b 12/13 [001]  1870.105845", "a b", 12);
    assert_eq!(task(b"no cpu here"), None);
    assert_eq!(task(b"dd-12 [0\xff1] ..... 1.5"), None);
}

#[test]
fn names_of_events_may_be_padded() {
    for (before, system) in [(" ", "block:"), ("       ", "block:"), ("  ", ""), ("\t", "block:")] {
        let line = format!(
            "my prog    77/78 [000]   100.000010:{before}{system}block_bio_queue: 8,0 WS 100 + 8 [my prog]"
        );
        let found = tracefs(line.as_bytes());
        assert!(
            matches!(
                &found,
                Ok(Line::Event(Event { time: 100_000_010_000, pid: 77, sector: 100, .. }, b"my prog"))
            ),
            "{line}"
        );
    }
    let padded = "dd    77 [000]   100.000010:         block:block_plug: [dd]";
    assert!(matches!(tracefs(padded.as_bytes()), Ok(Line::Passed(100_000_010_000))));
}

#[test]
fn lines_of_other_events_and_tracers_are_told_from_damage() {
    let other = |line: &str| assert!(matches!(tracefs(line.as_bytes()), Ok(Line::Other)), "{line}");
    other("");
    other("# tracer: nop");
    other("##### CPU 1 buffer started ####");
    other("cpus=4");
    other("CPU 3 is empty");
    other("    dd-77    [000] .....   100.000010: sched_switch: prev_comm=x");
    other("    dd-77    [000]   100.000010: sched_switch:         prev_comm=x");
    other("my [odd] prog    77 [000]   100.000000: sched:sched_switch: prev_comm=x");
    other("    dd-77    [000] .....   100.000010: tracing_mark_write: block_begin: run");
    other("    dd-77    [000] .....   100.000010: submit_bio <-submit_bh");
    other("    dd-77    [000] .....   100.000010:   8,0    Q   W 100 + 8 [dd]");
    other(" => submit_bio");
    other("\tffffffff8123abcd submit_bio+0x1 ([kernel.kallsyms])");
    for known in ["block_plug: [dd]", "block_split: 8,0 W 8 / 16 [dd]", "block_io_start: 8,0 W 4096 () 8 + 8"]
    {
        let line = format!("    dd-77    [000] .....   100.000010: {known}");
        assert!(matches!(tracefs(line.as_bytes()), Ok(Line::Passed(100_000_010_000))), "{line}");
    }
    let lost = |line: &str| match tracefs(line.as_bytes()) {
        Ok(Line::Lost(events)) => events,
        _ => 0,
    };
    assert_eq!(lost("CPU:1 [LOST 12 EVENTS]"), 12);
    assert_eq!(lost("CPU:1 [12 EVENTS DROPPED]"), 12);
    assert_eq!(lost("CPU:1 [EVENTS DROPPED]"), 1);
    let cut = "    dd-77    [000] .....   100.000010: block_bio_queue: 8,0 WS 100 + 8 [dd]";
    for to in 1..cut.len() {
        let damaged = tracefs(&cut.as_bytes()[..to]).is_err();
        assert!(damaged || cut[..to].trim().is_empty(), "{}", &cut[..to]);
    }
    let bad = |line: &str| assert!(tracefs(line.as_bytes()).is_err(), "{line}");
    bad("garbage garbage");
    bad("    dd-77    [000] .....   100.000010: block_bio_qXeue: 8,0 WS 100 + 8 [dd]");
    bad("    dd-77    [0?0] .....   100.000010: block_bio_queue: 8,0 WS 100 + 8 [dd]");
}

#[test]
fn actions_of_blkparse_have_their_ends() {
    let head = "  8,0    0        4     0.000002000    77  ";
    let event = |rest: &str| match blkparse(format!("{head}{rest}").as_bytes()) {
        Ok(Line::Event(event, _)) => Some((event.sector, event.bytes)),
        Ok(Line::Passed(2000) | Line::Other) => None,
        _ => panic!("{rest}"),
    };
    assert_eq!(event("Q  WS 100 + 8 [my prog]"), Some((100, 4096)));
    assert_eq!(event("Q FWS [my prog]"), Some((0, 0)));
    assert_eq!(event("Q FWS (    3000) [my prog]"), Some((0, 0)));
    assert_eq!(event("D  WS 100 + 8 (    3000) [my prog]"), Some((100, 4096)));
    assert_eq!(event("C  FW 18446744073709551615 [0]"), Some((u64::MAX, 0)));
    for other in [
        "D   R 36 (12 00 00 00) [smart d]",
        "D   R 36 [smart d]",
        "C   R [0]",
        "C   R (12 00 00 00) [0]",
        "G  WS 100 + 8 [dd]",
        "P   N [dd]",
        "U   N [dd] 1",
        "UT  N [dd] 1",
        "X  WS 100 / 104 [dd]",
        "A  WS 100 + 8 <- (8,3) 48",
        "m   N cfq77 Not idling",
    ] {
        assert_eq!(event(other), None, "{other}");
    }
    for bad in [
        "q  WS 100 + 8 [dd]",
        "QQ  WS 100 + 8 [dd]",
        "Q  W 286400",
        "Q  W 286400 [dd]",
        "Q  W 286400 +",
        "Q  W 286400 + 8",
        "Q  W [dd]",
        "Q  W 286400 + 8 [dd",
        "Q  W 286400 x 8 [dd]",
        "Q  W",
        "C  W 286400",
        "C  W 286400 + 8 [",
        "G  W 286400",
        "A  W 286400 + 8",
        "U   N [d",
    ] {
        assert!(blkparse(format!("{head}{bad}").as_bytes()).is_err(), "{bad}");
    }
}
