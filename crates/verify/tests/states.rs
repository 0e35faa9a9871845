//! States that are not as they should be are refused, and take no more memory than there is.

use loadstone_verify::state;

const ENTRY: usize = 24;

/// A state with this header, and these entries packed.
fn made(header: &str, entries: &[u8]) -> Vec<u8> {
    let mut bytes = b"LSVERIFY\x03\0\0\0".to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(zstd::encode_all(entries, 19).unwrap());
    bytes
}

/// The header of a state of files with these sizes, in blocks of 4 KiB.
fn header(sizes: &[u64]) -> String {
    let file = |size: &u64| {
        format!(
            r#"{{"path":"/f","size":{size},"before":"filled","stable":false,"discards":false,"mapped":false,"epoch":1,"synced":0}}"#
        )
    };
    let files: Vec<String> = sizes.iter().map(file).collect();
    format!(r#"{{"recipe":{{"unit":4096,"key":7}},"running":false,"files":[{}]}}"#, files.join(","))
}

fn entry(latest: u32, floor: u32, durable: u32) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    for (place, number) in bytes.chunks_exact_mut(4).zip([latest, floor, durable, 1, 4096]) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn refused(bytes: &[u8]) -> String {
    state::read(bytes).err().expect("refused")
}

#[test]
fn the_layout_is_as_documented() {
    let entries = [entry(5, 4, 2), entry(0, 0, u32::MAX)].concat();
    let state = state::read(&made(&header(&[4096, 100]), &entries)[..]).unwrap();
    assert!(!state.running && (state.recipe.unit, state.recipe.key) == (4096, 7));
    let known: Vec<_> = state.verifier.files.iter().flat_map(|ledger| ledger.entries()).collect();
    assert_eq!((known[0].latest, known[0].floor, known[0].durable, known[0].epoch), (5, 4, 2, 1));
    assert_eq!((known.len(), known[1].durable), (2, u32::MAX));
}

#[test]
fn a_few_bytes_take_no_more_memory_than_there_is() {
    // One file, and many that together are too many; also where the sum is too large for 64 bits.
    for sizes in [vec![u64::MAX], vec![1 << 54; 4], vec![u64::MAX; 5000]] {
        let told = refused(&made(&header(&sizes), &[]));
        assert!(told.starts_with("tells of ") && told.contains("MiB are available"), "{told}");
    }
    // More entries than blocks, packed to a thousandth: nothing is unpacked that no file has.
    let many = made(&header(&[4096]), &vec![0; 100 << 20]);
    assert!(many.len() < 1 << 16);
    assert_eq!(refused(&many), "is damaged: it has more blocks than its files");
    // A header of 16 MiB that is not there.
    let mut bytes = made(&header(&[4096]), &entry(0, 0, 0));
    bytes[12..16].copy_from_slice(&(1u32 << 24).to_le_bytes());
    assert!(refused(&bytes).contains("its header"));
    bytes[12..16].copy_from_slice(&((1u32 << 24) + 1).to_le_bytes());
    assert_eq!(refused(&bytes), "is damaged: a header of 16777217 bytes");
}

#[test]
fn generations_that_no_run_has_are_refused() {
    for (latest, floor, durable) in [(1, 2, 0), (3, 1, 2), (u32::MAX, 0, 0), (u32::MAX, u32::MAX, 0)] {
        let told = refused(&made(&header(&[4096]), &entry(latest, floor, durable)));
        assert!(told.contains(&format!("generations {floor} to {latest}")), "{told}");
    }
}

#[test]
fn other_versions_units_and_shapes_are_refused() {
    let right = made(&header(&[4096]), &entry(0, 0, 0));
    assert!(state::read(&right[..]).is_ok());
    for version in [1, 2, 4] {
        let mut other = right.clone();
        other[8] = version;
        let told = refused(&other);
        assert!(
            told.starts_with(&format!("has version {version}, and this build reads version 3: ")),
            "{told}"
        );
        assert!(told.ends_with("verify by the Loadstone that kept it, or run again"), "{told}");
    }
    for unit in [0, 100, 1 << 21] {
        let odd = header(&[4096]).replace("4096,\"key\"", &format!("{unit},\"key\""));
        let told = refused(&made(&odd, &entry(0, 0, 0)));
        assert!(told.contains(&format!("blocks of {unit} bytes cannot be verified")), "{told}");
    }
    assert!(refused(&made("{}", &[])).contains("its header"));
    assert!(refused(&made(&header(&[8192]), &entry(0, 0, 0))).contains("cut short"));
}
