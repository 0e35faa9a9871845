//! Calling libraries that panic on damaged input.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is expected and therefore not told.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of which a panic is one more error: `None`, and nothing is printed. Whatever the work had in
/// hand then must not be used again.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                usual(panic);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_result_and_the_next_one_is_told_again() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { panic!("damaged") }), None);
        assert!(!EXPECTED.get());
        assert_eq!(guarded(|| (guarded(|| -> u8 { panic!("inner") }), EXPECTED.get())), Some((None, true)));
    }
}
