//! Writes that are stored whole or not at all: what a file or device can do of it (statx(2), Linux 6.11).

use crate::{Error, Result};
use loadstone_plan::{Plan, Source, Target};
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs::File;
use std::path::Path;

/// `STATX_WRITE_ATOMIC`, for which rustix has no name.
const WRITE_ATOMIC: u32 = 0x1_0000;

/// Refuses a target that cannot store the plan's writes whole.
///
/// # Errors
/// When the file system or device does not offer it, or not for sizes that are written.
pub fn check(plan: &Plan, target: &Target, file: &File) -> Result<()> {
    let path = target.path.as_path();
    let asked = StatxFlags::from_bits_retain(WRITE_ATOMIC);
    let found = statx(file, "", AtFlags::EMPTY_PATH, asked)
        .map_err(|e| Error::target_io(path, "cannot be looked at", &e.into()))?;
    let known = found.stx_mask & WRITE_ATOMIC != 0;
    let (least, most) = (found.stx_atomic_write_unit_min, found.stx_atomic_write_unit_max);
    judge(path, written(plan, &target.id), if known { (least.into(), most.into()) } else { (0, 0) })
}

/// Sizes of the uniform writes to a target: the least, the largest, and one that is no power of two.
fn written(plan: &Plan, id: &str) -> Vec<u64> {
    let to = |worker: &&loadstone_plan::Worker| worker.map.objects.iter().any(|extent| extent.target == id);
    let sizes = plan.workers.iter().filter(to).flat_map(|worker| match &worker.source {
        Source::Uniform { reads, size, sizes, write_sizes, .. } if *reads < 1.0 => {
            let rows = if write_sizes.is_empty() { sizes } else { write_sizes };
            match rows.as_slice() {
                [] => vec![*size],
                // Multiples of a step between two sizes are no powers of two all.
                rows => rows
                    .iter()
                    .flat_map(|row| {
                        let (low, high) = (row.low as u64, row.high as u64);
                        [low, high, if high > low + size { low + 2 * size } else { low }]
                    })
                    .collect(),
            }
        }
        _ => Vec::new(),
    });
    sizes.collect()
}

fn judge(path: &Path, sizes: Vec<u64>, (least, most): (u64, u64)) -> Result<()> {
    if most == 0 {
        let what = "offers no atomic writes (statx says 0 bytes): its file system, device or kernel cannot do them; \
                    leave atomic out, or use a device whose queue/atomic_write_unit_max_bytes is above 0";
        return Err(Error::target(path, what));
    }
    match sizes.into_iter().find(|size| !size.is_power_of_two() || !(least..=most).contains(size)) {
        None => Ok(()),
        Some(size) => {
            let what = format!(
                "cannot write {size} bytes atomically: write powers of two from {least} to {most} bytes"
            );
            Err(Error::target(path, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(source: serde_json::Value) -> Plan {
        let plan = json!({
            "version": 1,
            "targets": [
                {"id": "t", "kind": "file", "path": "/a", "size": 1 << 20, "direct": true, "atomic": true},
            ],
            "workers": [{
                "source": source,
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
            }],
            "steps": [{"step": "run"}],
        });
        Plan::parse(&plan.to_string()).unwrap()
    }

    #[test]
    fn sizes_are_powers_of_two_within_what_the_device_offers() {
        let uniform = |size: u64, sizes: serde_json::Value| {
            plan(json!({"kind": "uniform", "reads": 0.5, "size": size, "sizes": sizes}))
        };
        let judged = |plan: &Plan, limits| {
            let judged = judge(Path::new("/a"), written(plan, "t"), limits);
            judged.map_err(|e| e.to_string())
        };
        let limits = (4096, 65536);
        for (plan, refused) in [
            (uniform(4096, json!([])), None),
            (uniform(65536, json!([])), None),
            (uniform(131_072, json!([])), Some("131072")),
            (uniform(2048, json!([])), Some("2048")),
            (uniform(12288, json!([])), Some("12288")),
            (uniform(4096, json!([{"share": 1, "low": 4096, "high": 8192}])), None),
            (uniform(4096, json!([{"share": 1, "low": 4096, "high": 16384}])), Some("12288")),
            (uniform(4096, json!([{"share": 1, "low": 8192, "high": 8192}])), None),
        ] {
            match (judged(&plan, limits), refused) {
                (Ok(()), None) => {}
                (Err(said), Some(size)) => assert!(said.contains(&format!("write {size} bytes")), "{said}"),
                (found, _) => panic!("{found:?}, not {refused:?}"),
            }
        }
        let said = judged(&uniform(4096, json!([])), (0, 0)).unwrap_err();
        assert!(said.contains("offers no atomic writes"), "{said}");
        // Reads are of any size.
        let reads = plan(json!({"kind": "uniform", "reads": 1.0, "size": 12288}));
        judged(&reads, limits).unwrap();
    }
}
