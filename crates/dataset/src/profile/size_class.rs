//! Classes of sizes in bytes, which profiles tell in place of sizes.

/// Classes of sizes for each doubling.
pub(crate) const CLASSES: f64 = 4.0;

/// Which class a size in bytes is of: 0 of empty files, then four for each doubling.
pub(crate) fn class(size: u64) -> u32 {
    if size == 0 { 0 } else { 1 + ((size as f64).log2() * CLASSES + 1e-9) as u32 }
}

/// Smallest and largest size of a class.
pub(crate) fn sizes_of_class(class: u32) -> (u64, u64) {
    let edge = |class: u32| (f64::from(class) / CLASSES - 1e-9).exp2().ceil() as u64;
    match class.checked_sub(1) {
        None => (0, 0),
        Some(least) => (edge(least), (edge(class) - 1).max(edge(least))),
    }
}
