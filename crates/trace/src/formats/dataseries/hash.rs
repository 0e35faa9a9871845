//! Bob Jenkins' `lookup2` (1996), the hash of DataSeries' extents and tail.

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for [x, y, z] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> x);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << y);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> z);
    }
    [a, b, c]
}

/// The third word of the mixing step alone.
pub fn mixed(a: u32, b: u32, c: u32) -> u32 {
    mix([a, b, c])[2]
}

/// The hash of bytes, from a seed or the hash before them.
pub fn lookup2(seed: u32, bytes: &[u8]) -> u32 {
    let word = |part: &[u8]| part.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    let mut state = [0x9e37_79b9, 0x9e37_79b9, seed];
    let mut parts = bytes.chunks_exact(12);
    for part in &mut parts {
        for (lane, bytes) in state.iter_mut().zip(part.chunks_exact(4)) {
            *lane = lane.wrapping_add(word(bytes));
        }
        state = mix(state);
    }
    let rest = parts.remainder();
    let of = |from: usize| word(rest.get(from..rest.len().min(from + 4)).unwrap_or_default());
    state[0] = state[0].wrapping_add(of(0));
    state[1] = state[1].wrapping_add(of(4));
    // The lowest byte of the last word is the length's.
    state[2] = state[2].wrapping_add(of(8) << 8).wrapping_add(bytes.len() as u32);
    mix(state)[2]
}
