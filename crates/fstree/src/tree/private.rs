//! Private sections: length of the records, u32, then records of tag, u16, length, u32, and bytes.

/// Adds a section to those of a tree, and tells where it begins; nothing where that is beyond 2^32 bytes.
pub(super) fn write_private(pool: &mut Vec<u8>, records: &[(u16, &[u8])]) -> Option<u32> {
    let at = u32::try_from(pool.len()).ok()?;
    let length: usize = records.iter().map(|(_, bytes)| 6 + bytes.len()).sum();
    pool.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    for (tag, bytes) in records {
        pool.extend_from_slice(&tag.to_le_bytes());
        pool.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        pool.extend_from_slice(bytes);
    }
    Some(at)
}

/// Private records of an object: tag and bytes. What is damaged ends them.
pub struct Private<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Iterator for Private<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = self.rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.rest = rest;
        Some((u16::from_le_bytes(*tag), bytes))
    }
}
