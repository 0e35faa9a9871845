//! A copy that a fault ends: it tells where, and nothing takes the place of the page that is not there.
//!
//! Touching a mapped page beyond the end of its file, or one that the device cannot give, raises SIGBUS. The copy is a
//! few instructions of known address. A handler of SIGBUS that finds its thread in them lets the copy return the address
//! of the fault. So each copy knows of its own faults, whatever other threads do, and the page faults again for the next
//! one. A fault anywhere else goes to whoever handled SIGBUS before.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Once;

/// This build knows how to copy so.
pub const POSSIBLE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    /// Copies `size` bytes: 0, or the address that could not be touched.
    fn loadstone_engine_copy(to: *mut u8, from: *const u8, size: usize) -> usize;
    /// First instruction of it that touches memory.
    static loadstone_engine_copy_touches: u8;
    /// The one behind the last of them: returns what is in the register of results.
    static loadstone_engine_copy_returns: u8;
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.loadstone_engine_copy,\"ax\",@progbits",
    ".globl loadstone_engine_copy, loadstone_engine_copy_touches, loadstone_engine_copy_returns",
    ".hidden loadstone_engine_copy, loadstone_engine_copy_touches, loadstone_engine_copy_returns",
    ".type loadstone_engine_copy,@function",
    "loadstone_engine_copy:",
    "mov rcx, rdx",
    "xor eax, eax",
    "loadstone_engine_copy_touches:",
    "rep movsb",
    "loadstone_engine_copy_returns:",
    "ret",
    ".size loadstone_engine_copy, . - loadstone_engine_copy",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.loadstone_engine_copy,\"ax\",%progbits",
    ".globl loadstone_engine_copy, loadstone_engine_copy_touches, loadstone_engine_copy_returns",
    ".hidden loadstone_engine_copy, loadstone_engine_copy_touches, loadstone_engine_copy_returns",
    ".type loadstone_engine_copy,%function",
    "loadstone_engine_copy:",
    "mov x3, x0",
    "mov x0, xzr",
    "loadstone_engine_copy_touches:",
    "1: cmp x2, #32",
    "b.lo 2f",
    "ldp q0, q1, [x1], #32",
    "stp q0, q1, [x3], #32",
    "sub x2, x2, #32",
    "b 1b",
    "2: cbz x2, 3f",
    "ldrb w4, [x1], #1",
    "strb w4, [x3], #1",
    "sub x2, x2, #1",
    "b 2b",
    "loadstone_engine_copy_returns:",
    "3: ret",
    ".size loadstone_engine_copy, . - loadstone_engine_copy",
    ".popsection",
);

/// Copies `size` bytes; the address that could not be touched, if there is one. What came before it may be copied.
///
/// # Errors
/// The address that could not be touched.
///
/// # Safety
/// Both ranges belong to the caller and do not overlap; [`install`] was called before.
#[inline]
pub unsafe fn copy(to: *mut u8, from: *const u8, size: usize) -> Result<(), usize> {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: promised by the caller; the function keeps to the calling convention of C, also where a fault ends it.
    match unsafe { loadstone_engine_copy(to, from, size) } {
        0 => Ok(()),
        at => Err(at),
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let _ = (from, size);
        Err(to as usize)
    }
}

static INSTALLED: Once = Once::new();
/// What handled SIGBUS before: written once, before the handler is there.
static mut BEFORE: MaybeUninit<libc::sigaction> = MaybeUninit::zeroed();

/// Makes a thread that faulted in the copy go on where that returns; whether it was in it.
///
/// # Safety
/// `context` is what the kernel gave the handler.
#[cfg(target_arch = "x86_64")]
unsafe fn end_copy(context: *mut libc::c_void, fault: usize) -> bool {
    // SAFETY: promised by the caller; only the addresses of the instructions are taken.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[libc::REG_RIP as usize] as usize;
        let (first, end) =
            (&raw const loadstone_engine_copy_touches, &raw const loadstone_engine_copy_returns);
        let inside = (first as usize..end as usize).contains(&at);
        if inside {
            registers[libc::REG_RAX as usize] = fault as i64;
            registers[libc::REG_RIP as usize] = end as i64;
        }
        inside
    }
}

#[cfg(target_arch = "aarch64")]
unsafe fn end_copy(context: *mut libc::c_void, fault: usize) -> bool {
    // SAFETY: promised by the caller; only the addresses of the instructions are taken.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext;
        let (first, end) =
            (&raw const loadstone_engine_copy_touches, &raw const loadstone_engine_copy_returns);
        let inside = (first as u64..end as u64).contains(&registers.pc);
        if inside {
            registers.regs[0] = fault as u64;
            registers.pc = end as u64;
        }
        inside
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn end_copy(_: *mut libc::c_void, _: usize) -> bool {
    false
}

extern "C" fn on_bus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid siginfo and context; BEFORE was written before this handler was installed.
    unsafe {
        // Only the kernel's own codes are above 0, and only they tell an address.
        if (*info).si_code > 0 && end_copy(context, (*info).si_addr() as usize) {
            return;
        }
        let before = *(&raw const BEFORE).cast::<libc::sigaction>();
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The access is made again when this returns, and ends the process as it would have.
                let usual: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &usual, null_mut());
            }
            other if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(other);
                handler(signal, info, context);
            }
            other => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(other);
                handler(signal);
            }
        }
    }
}

/// Installs the handler, once in the life of the process.
pub fn install() {
    INSTALLED.call_once(|| {
        // SAFETY: the new action is plain data with a handler of the right shape.
        unsafe {
            libc::sigaction(libc::SIGBUS, std::ptr::null(), (&raw mut BEFORE).cast());
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, null_mut());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_is_copied_and_none_beside(size in 0usize..5000, from in 0usize..70, to in 0usize..70) {
            let bytes: Vec<u8> = (0..size + 70).map(|i| (i * 31 % 251) as u8).collect();
            let mut room = vec![255u8; size + 140];
            // SAFETY: both vectors reach further than what is copied.
            let done = unsafe { copy(room.as_mut_ptr().add(to), bytes.as_ptr().add(from), size) };
            prop_assert_eq!(done, Ok(()));
            prop_assert_eq!(&room[to..to + size], &bytes[from..from + size]);
            prop_assert!(room[..to].iter().chain(&room[to + size..]).all(|byte| *byte == 255));
        }
    }
}
