//! Which chunks files keep, where, and what they have in common.

use super::*;
use crate::profile::tests::scanned_by;
use std::collections::HashSet;

#[test]
fn what_lies_behind_changes_that_keep_the_length_stays_in_place() {
    let snapshot = |i: u64| {
        let part = |at: u64| (if at % 20 == 7 { 1000 * (i + 1) + at } else { at }, 8192);
        vec![("0.c".to_string(), (0..400).map(part).collect())]
    };
    let mut asked = Profile::with_runs(&scanned(&[snapshot(0), snapshot(1), snapshot(2)])).unwrap();
    for chunking in [asked.chunking, Chunking::default()] {
        for share in [1.0, 0.7, 0.4, 0.1] {
            asked.chunking = chunking;
            let row = asked.steps[2].changed[0];
            let wanted = 4 * (f64::from(row.kept) * share) as u32;
            asked.steps[2].changed[0].in_place = wanted / 4;
            let made = |seed| Profile::with_runs(&make(&asked, &options(3, seed, 1.0)).0).unwrap();
            let each = [1, 2, 3, 4].map(|seed| made(seed).steps[2].changed[0].in_place);
            assert!(each.iter().all(|found| 20 * found >= 4 * wanted), "{each:?} of {wanted} in four series");
            let found: u32 = each.iter().sum();
            assert!(5 * found >= 4 * wanted, "{found} of {wanted} with {chunking:?}");
            // Blocks of one size are in place whenever as many come as go.
            assert!(chunking != Chunking::default() || 5 * found <= 6 * wanted, "{found} of {wanted}");
        }
    }
}

#[test]
fn large_chunks_change_more_often() {
    // Changes of a byte or so anywhere in large files.
    let draw = &mut Draw::new(5, 5, 5);
    let mut files: Vec<Parts> = (0..20)
        .map(|n| (format!("{n}.c"), (0..3000).map(|at| (10_000 * (n + 1) + at, 200)).collect()))
        .collect();
    let mut snapshots = vec![files.clone()];
    for i in 1..4 {
        for (_, parts) in &mut files {
            for change in 0..20 {
                parts[draw.below(3000)].0 = 1_000_000 * i + change;
            }
        }
        snapshots.push(files.clone());
    }
    let real = scanned_by(Chunking::default(), &snapshots);
    let profile = Profile::with_runs(&real).unwrap();
    // Mean size of what is kept in the last change, and bytes of the last tree.
    let told = |series: &Series| {
        let [.., before, last] = &series.trees[..] else { panic!() };
        let has: HashSet<_> = last.refs.iter().collect();
        let size = |chunk: &u32| f64::from(series.chunks.size(*chunk));
        let kept: Vec<_> = before.refs.iter().filter(|chunk| has.contains(chunk)).map(size).collect();
        (kept.iter().sum::<f64>() / kept.len() as f64, last.refs.iter().map(size).sum::<f64>())
    };
    let (kept, bytes) = told(&real);
    for seed in 0..3 {
        let made = told(&make(&profile, &options(4, seed, 1.0)).0);
        let off = (made.0 / kept - 1.0, made.1 / bytes - 1.0);
        assert!(off.0.abs() < 0.03 && off.1.abs() < 0.02, "seed {seed}: {off:?}");
    }
    let mut untold = profile.clone();
    untold.steps.iter_mut().flat_map(|step| &mut step.carried).for_each(|row| row.size = 0);
    let (made, _) = told(&make(&untold, &options(4, 0, 1.0)).0);
    assert!(made / kept - 1.0 > 0.04, "kept ones are larger where that is not told: {made} {kept}");
}
