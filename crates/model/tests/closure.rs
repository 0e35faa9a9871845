//! A model, the requests sampled from it, and the model fitted to those are one.

mod common;

use common::{Memory, copies, interrupted, mixed, options, pauses, push, stream, sweeps, whole};
use loadstone_model::distance::total_variation;
use loadstone_model::{FitOptions, Model, Sampler, fit};
use loadstone_trace::lru::{Curve, Stack};
use loadstone_trace::{Batch, NONE};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn phases_are_found_and_the_file_keeps_everything() {
    let model = fit(&mut Memory(stream(1, 100_000)), &options()).unwrap();
    assert_eq!(model.matrices.len(), 2, "sequential and random");
    assert_eq!(model.requests(), 100_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mdh");
    model.save(&path, false).unwrap();
    assert!(model.save(&path, false).unwrap_err().to_string().contains("`force`"));
    model.save(&path, true).unwrap();
    assert_eq!(Model::load(&path).unwrap(), model);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left aside");
}

#[test]
fn a_whole_stream_has_exactly_the_models_counts() {
    let model = Arc::new(fit(&mut Memory(stream(2, 60_000)), &options()).unwrap());
    let mut sampler = Sampler::new(Arc::clone(&model), 5).unwrap();
    let requests = whole(&mut sampler);
    assert_eq!(sampler.tally().requests, 60_000);
    let mut counts = vec![0u64; model.header.windows.counts.len()];
    let (mut last, extents) = (0, [model.header.objects[0].extent, model.header.objects[1].extent]);
    for b in &requests {
        for i in 0..b.len() {
            assert!(b.time[i] >= last);
            last = b.time[i];
            counts[(b.time[i] / model.header.windows.length_ns) as usize] += 1;
            if b.offset[i] != NONE {
                assert!(b.offset[i] >= 0 && b.offset[i] + b.size[i] <= extents[b.object[i] as usize]);
                assert_eq!(b.offset[i] % 512, 0);
            }
        }
    }
    let expected: Vec<u64> = model.header.windows.counts.clone();
    assert!(counts == expected, "every window keeps its number of requests");
    let again = fit(&mut Memory(requests), &options()).unwrap();
    for name in ["op", "object", "size"] {
        let d = model.dimension(name).unwrap();
        let by_value = |m: &Model| {
            let marginal = m.marginal(d, None).unwrap();
            let d = m.dimension(name).unwrap();
            let rule = &m.header.dimensions[d].rule;
            let mut pairs: Vec<_> = marginal
                .keys
                .iter()
                .zip(&marginal.counts)
                .map(|(&code, &n)| (rule.range(code as u32).map(|r| (r.first, r.last)), n))
                .collect();
            pairs.sort_unstable();
            pairs
        };
        assert_eq!(by_value(&again), by_value(&model), "{name}");
    }
    let tally = sampler.tally();
    // Of the eight remainders in a page that runs are at, a draw has one.
    assert!(tally.displaced < 60_000 / 20 && tally.backed_off < 60_000 / 10, "{tally:?}");
}

#[test]
fn the_same_seed_gives_the_same_stream() {
    let model = Arc::new(fit(&mut Memory(stream(3, 5_000)), &options()).unwrap());
    let run = |seed| whole(&mut Sampler::new(Arc::clone(&model), seed).unwrap());
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn given_dimensions_keep_what_depends_on_the_previous_request() {
    let model = Arc::new(fit(&mut Memory(stream(4, 50_000)), &options()).unwrap());
    let mut sampler = Sampler::new(Arc::clone(&model), 1).unwrap();
    let requests = whole(&mut sampler);
    assert_eq!(requests.iter().map(Batch::len).sum::<usize>(), 50_000);
    // Runs come from the same op on the same object twice in a row: of another op they would be short.
    let again = fit(&mut Memory(requests), &options()).unwrap();
    for (name, most) in [("previous(run)", 0.06), ("resume", 0.2)] {
        let by_code = |m: &Model| m.marginal(m.dimension(name).unwrap(), None).unwrap();
        let far = total_variation(&by_code(&model), &by_code(&again)).raw;
        assert!(far < most, "{name}: {far}");
    }
}

#[test]
fn streams_runs_and_places_come_back() {
    let trace = copies(12_000);
    let model = Arc::new(fit(&mut Memory(trace.clone()), &FitOptions::default()).unwrap());
    let mut plain = (*model).clone();
    plain.header.windows.groups = loadstone_model::Groups::default();
    let [drawn, plain] = [model, Arc::new(plain)].map(|m| whole(&mut Sampler::new(m, 1).unwrap()));
    let count = |batches: &[Batch]| {
        let (mut merged, mut places, mut last) = (0, std::collections::BTreeSet::new(), (9, NONE));
        for b in batches {
            for i in 0..b.len() {
                merged += u32::from(last == (b.op[i], b.offset[i]));
                last = (b.op[i], b.offset[i] + b.size[i]);
                places.insert(b.offset[i] >> 16);
            }
        }
        (f64::from(merged), places.len() as f64)
    };
    let asked = count(&trace);
    // What the block layer can merge, and how much of the object is touched. A lone write and the first
    // of five leave the same behind, so drawn fives go on where lone ones were, and touch less; and less
    // still where groups tell the ops, as a draw is then exchanged only for one of its own op.
    for (drawn, least) in [(&plain, 0.75), (&drawn, 0.55)] {
        let got = count(drawn);
        assert!((got.0 / asked.0 - 1.0).abs() < 0.05, "{got:?} for {asked:?}");
        assert!((least..1.25).contains(&(got.1 / asked.1)), "{got:?} for {asked:?}");
    }
    let off = drawn.iter().flat_map(|b| &b.offset).filter(|o| *o % 4096 != 0 && *o % 4096 != 512).count();
    assert!(off < 120, "{off} lie where nothing lay in a page");
}

/// Pages that are written in the order of their offsets stay so, and in their area.
#[test]
fn sweeps_over_the_same_pages_stay_sweeps() {
    let trace = sweeps(40, 3000);
    let model = Arc::new(fit(&mut Memory(trace.clone()), &FitOptions::default()).unwrap());
    let count = |batches: &[Batch]| {
        let offsets: Vec<i64> = batches.iter().flat_map(|b| b.offset.iter().copied()).collect();
        let ahead = offsets.windows(2).filter(|o| (1..1 << 16).contains(&(o[1] - o[0]))).count();
        let pages: std::collections::BTreeSet<i64> = offsets.iter().map(|o| o >> 12).collect();
        (ahead as f64, pages.len() as f64)
    };
    let asked = count(&trace);
    for seed in 0..3 {
        let got = count(&whole(&mut Sampler::new(model.clone(), seed).unwrap()));
        // Stack distances break off some.
        assert!((0.8..1.1).contains(&(got.0 / asked.0)), "{got:?} for {asked:?}");
        assert!((0.6..1.4).contains(&(got.1 / asked.1)), "{got:?} for {asked:?}");
    }
}

/// Windows of one matrix with longer and with shorter gaps: hands that are drawn blindly do not fit their time.
#[test]
fn long_gaps_come_as_often_as_in_the_trace() {
    const MS: i64 = 1_000_000;
    let trace = pauses(20_000);
    let options = FitOptions { threshold: 1.0, window_ns: Some(20000 * MS), ..FitOptions::default() };
    let model = Arc::new(fit(&mut Memory(trace.clone()), &options).unwrap());
    let by_length = |batches: &[Batch]| {
        let times: Vec<i64> = batches.iter().flat_map(|b| b.time.clone()).collect();
        let mut counts = [0i64; 8];
        // 20 ms, 40 ms and so on, to all above 2,560.
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]) / (20 * MS)).filter(|gap| *gap > 0);
        gaps.for_each(|gap| counts[(gap.ilog2() as usize).min(7)] += 1);
        counts
    };
    let wanted = by_length(&trace);
    for seed in 0..3 {
        let got = by_length(&whole(&mut Sampler::new(Arc::clone(&model), seed).unwrap()));
        let off: i64 = got.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).sum();
        assert!(off < wanted.iter().sum::<i64>() / 4, "{got:?} where the trace has {wanted:?}");
    }
}

/// A few huge writes between many small reads: most of the bytes, and nearly none of the requests.
#[test]
fn few_huge_requests_keep_their_place_and_their_size() {
    const MS: i64 = 1_000_000;
    const HUGE: i64 = 8 << 20;
    let mut b = Batch::default();
    (0..2000).for_each(|i| push(&mut b, i * MS, 0, (i * 7919 % 5000) * 4096, 4096));
    (0..12).for_each(|i| push(&mut b, (2000 + i) * MS, 1, i * HUGE, HUGE));
    (0..2000).for_each(|i| push(&mut b, (2500 + i) * MS, 0, (i * 7919 % 5000) * 4096, 4096));
    let options = FitOptions { window_ns: Some(50 * MS), ..FitOptions::default() };
    let model = Arc::new(fit(&mut Memory(vec![b]), &options).unwrap());
    for seed in 0..3 {
        let drawn = whole(&mut Sampler::new(model.clone(), seed).unwrap());
        let huge = |b: &Batch| -> Vec<(i64, i64)> {
            b.time.iter().zip(&b.size).filter(|r| *r.1 > 4096).map(|(t, s)| (*t, *s)).collect()
        };
        let huge: Vec<_> = drawn.iter().flat_map(huge).collect();
        assert_eq!(huge.len(), 12);
        assert!(huge.iter().all(|&(t, s)| (2000 * MS..2050 * MS).contains(&t) && s <= HUGE), "{huge:?}");
    }
}

#[test]
fn groups_keep_how_many_of_their_requests_write() {
    // One matrix for all, though the share of writes changes every two seconds.
    let trace = mixed(40, 500);
    let model = fit(&mut Memory(trace.clone()), &FitOptions { threshold: 1.0, ..options() }).unwrap();
    assert_eq!(model.matrices.len(), 1);
    let mut plain = model.clone();
    plain.header.windows.groups = loadstone_model::Groups::default();
    let writes = |batches: &[Batch]| {
        let mut by_block = [0i64; 40];
        for b in batches {
            b.time
                .iter()
                .zip(&b.op)
                .for_each(|(t, op)| by_block[(t / 2_000_000_000) as usize] += i64::from(*op));
        }
        by_block
    };
    let wanted = writes(&trace);
    let off = |model: Model| {
        let got = writes(&whole(&mut Sampler::new(Arc::new(model), 1).unwrap()));
        got.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).sum::<i64>()
    };
    let (with, without) = (off(model), off(plain));
    assert!(with < 20_000 / 50 && without > 20_000 / 6, "{with} and {without} of 20000");
}

fn misses(batches: &[Batch]) -> Curve {
    let mut stack = Stack::exact();
    batches.iter().for_each(|batch| stack.add(batch));
    stack.curve()
}

/// Largest difference of the misses of caches of all sizes.
fn apart(a: &Curve, b: &Curve) -> f64 {
    let most = a.footprint.max(b.footprint);
    let sizes =
        (0..=200).map(|i| most * i / 200).chain((0..64).map(|bits| 1 << bits).take_while(|n| *n <= most));
    sizes.map(|size| (a.miss_ratio(size) - b.miss_ratio(size)).abs()).fold(0.0, f64::max)
}

#[test]
fn after_a_burst_requests_come_back_where_they_did() {
    let trace = interrupted(6_000);
    // Pages in the first third and in the last.
    let pages = |batches: &[Batch]| {
        let offsets: Vec<i64> = batches.iter().flat_map(|b| b.offset.iter().copied()).collect();
        [0, 12_000].map(|from| {
            offsets[from..from + 6_000].iter().map(|offset| offset / 4096).collect::<BTreeSet<_>>().len()
        })
    };
    assert_eq!(pages(&trace), [60, 60]);
    let options = FitOptions { dimensions: vec!["reuse_distance=log2:1".parse().unwrap()], ..options() };
    let model = fit(&mut Memory(trace.clone()), &options).unwrap().factored(16.0).unwrap();
    let told = misses(&trace);
    for seed in 1..4 {
        let drawn = whole(&mut Sampler::new(Arc::new(model.clone()), seed).unwrap());
        let [before, after] = pages(&drawn);
        assert!(after < 3 * before, "{before} pages before, {after} after");
        // Of the burst nothing is used again before all of it was used.
        let misses = misses(&drawn);
        let off = (8..15).map(|bits| (misses.miss_ratio(1 << bits) - told.miss_ratio(1 << bits)).abs());
        let off = off.fold(0.0, f64::max);
        assert!(off < 0.08, "{off}");
    }
}

#[test]
fn caches_miss_what_they_miss_of_the_trace() {
    let trace = copies(40_000);
    let wanted = misses(&trace);
    let by = |dimensions: &[&str], without: &[&str]| {
        let dimensions = dimensions.iter().map(|d| d.parse().unwrap()).collect();
        let without = without.iter().map(|name| name.parse().unwrap()).collect();
        fit(&mut Memory(trace.clone()), &FitOptions { dimensions, without, ..options() }).unwrap()
    };
    let drawn = |model: &Model, seed| {
        let stream = whole(&mut Sampler::new(Arc::new(model.clone()), seed).unwrap());
        assert_eq!(stream.iter().map(|b| b.len() as u64).sum::<u64>(), model.requests());
        apart(&misses(&stream), &wanted)
    };
    let (plain, known) = (by(&[], &["reuse_distance"]), by(&["reuse_distance=log2:1"], &[]));
    let distances = known.header.distances.as_ref().expect("kept where it is drawn");
    assert_eq!((distances.new, distances.total()), (wanted.footprint, wanted.references));
    assert!(plain.header.distances.is_none());
    for seed in 1..4 {
        let [plain, known] = [&plain, &known].map(|model| drawn(model, seed));
        assert!(known < 0.04 && known < plain, "{plain} {known}");
    }
}
