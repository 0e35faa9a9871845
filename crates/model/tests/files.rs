//! Models of requests of files: what is drawn is like the trace, and can be done.

mod common;

use common::{Memory, whole};
use loadstone_model::transform::superposed;
use loadstone_model::{Catalog, FitOptions, Fitter, Model, Sampler, measure};
use loadstone_trace::lru::{Curve, Stack};
use loadstone_trace::tree::{self, Entry};
use loadstone_trace::{Batch, Info, NO_OBJECT, NONE, Object, Op};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const ENOENT: i64 = -2;

/// A trace while it is made up.
#[derive(Default)]
struct Trace {
    batch: Batch,
    objects: HashMap<String, u32>,
    time: i64,
}

impl Trace {
    fn id(&mut self, name: &str) -> u32 {
        let next = self.objects.len() as u32;
        *self.objects.entry(name.into()).or_insert(next)
    }

    fn push(&mut self, op: Op, name: &str, other: &str, (offset, size): (i64, i64), result: i64) {
        self.time += 1_000_000;
        let (object, other) = (self.id(name), if other.is_empty() { NO_OBJECT } else { self.id(other) });
        let b = &mut self.batch;
        b.time.push(self.time);
        b.op.push(op as u8);
        b.object.push(object);
        b.other.push(other);
        b.offset.push(offset);
        b.size.push(size);
        b.result.push(result);
        b.latency.push(1000);
        b.flags.push(0);
        b.actor.push(0);
    }

    fn call(&mut self, op: Op, name: &str, result: i64) {
        self.push(op, name, "", (NONE, NONE), result);
    }

    fn names(&self) -> Vec<Object> {
        self.objects.iter().map(|(name, &id)| Object { id, name: name.clone() }).collect()
    }
}

/// A copy of a tree by way of temporary names, with a log and what is looked for in vain.
fn copy(seed: u64, files: usize) -> Trace {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut trace = Trace::default();
    let mut log = 0;
    for i in 0..files {
        let folder = i / 20;
        if i % 20 == 0 {
            trace.call(Op::Open, &format!("/secret/from/{folder}"), 0);
            trace.call(Op::Readdir, &format!("/secret/from/{folder}"), 0);
            trace.call(Op::Mkdir, &format!("/secret/to/{folder}"), 0);
        }
        let from = format!("/secret/from/{folder}/{i}");
        let (part, to) = (format!("/secret/to/{folder}/{i}.part"), format!("/secret/to/{folder}/{i}"));
        trace.call(Op::Stat, &from, 0);
        trace.call(Op::Stat, &to, ENOENT);
        trace.call(Op::Open, &from, 0);
        trace.call(Op::Create, &part, 0);
        for k in 0..rng.random_range(1..6) {
            trace.push(Op::Read, &from, "", (k * 4096, 4096), 4096);
            trace.push(Op::Write, &part, "", (k * 4096, 4096), 4096);
        }
        trace.call(Op::Close, &from, 0);
        trace.call(Op::Close, &part, 0);
        trace.push(Op::Rename, &part, &to, (NONE, NONE), 0);
        trace.push(Op::Write, "/secret/log", "", (log, 100), 100);
        log += 100;
        if rng.random_bool(0.2) {
            trace.call(Op::Remove, &from, 0);
        }
    }
    trace
}

fn fitted(trace: &Trace) -> Arc<Model> {
    let mut fitter = Fitter::new(&FitOptions { files: true, ..FitOptions::default() }).unwrap();
    let mut all = Memory(vec![trace.batch.clone()]);
    fitter.set_catalog(Catalog::of(&mut all, |_| trace.names(), |_| Ok(())).unwrap());
    fitter.push(&trace.batch).unwrap();
    Arc::new(fitter.finish().unwrap())
}

fn drawn(model: &Arc<Model>, seed: u64) -> (Vec<Batch>, Vec<String>, Sampler) {
    let mut sampler = Sampler::new(Arc::clone(model), seed).unwrap();
    let requests = whole(&mut sampler);
    let names = sampler.names().into_iter().map(|object| object.name).collect();
    (requests, names, sampler)
}

fn counts(batches: &[Batch]) -> BTreeMap<(u8, i64), usize> {
    let mut counts = BTreeMap::new();
    for batch in batches {
        for (op, result) in batch.op.iter().zip(&batch.result) {
            *counts.entry((*op, (*result).min(0))).or_default() += 1;
        }
    }
    counts
}

/// Random requests to one file; half of them go to a tenth of it.
fn database(seed: u64) -> Trace {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut trace = Trace::default();
    for _ in 0..20_000 {
        let size = if rng.random_bool(0.2) { 1 << 16 } else { 4096 };
        let pages = if rng.random_bool(0.5) { 4000 } else { 40_000 };
        let offset = rng.random_range(0..pages) * 4096;
        let op = if rng.random_bool(0.7) { Op::Read } else { Op::Write };
        trace.push(op, "/secret/base", "", (offset, size), size);
    }
    trace
}

/// What caches miss of requests.
fn curve(requests: &[Batch]) -> Curve {
    let mut stack = Stack::exact();
    requests.iter().for_each(|batch| stack.add(batch));
    stack.curve()
}

#[test]
fn blocks_of_a_file_come_back_as_often_as_in_the_trace() {
    let trace = database(3);
    let model = fitted(&trace);
    let (real, made) = (curve(&[trace.batch]), curve(&drawn(&model, 1).0));
    for part in [1, 2, 4, 8, 16, 32] {
        let cache = real.footprint / part;
        let (real, made) = (real.miss_ratio(cache), made.miss_ratio(cache));
        assert!((real - made).abs() < 0.05, "{cache} blocks miss {real:.3} and {made:.3}");
    }
}

#[test]
fn ops_and_failures_are_those_of_the_trace_and_names_are_not() {
    let trace = copy(1, 1500);
    let model = fitted(&trace);
    assert!(model.header.is_of_files() && model.header.objects.is_empty());
    let text = serde_json::to_string(&model.header).unwrap();
    assert!(!text.contains("secret"), "names are left out");
    let (requests, names, sampler) = drawn(&model, 1);
    assert_eq!(counts(&requests), counts(std::slice::from_ref(&trace.batch)));
    assert!(names.iter().all(|name| !name.contains("secret") && tree::inside(name).as_ref() == Some(name)));
    let (new, all) = (names.len() as f64, trace.objects.len() as f64);
    assert!((new / all - 1.0).abs() < 0.05, "{new} files, {all} in the trace");
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "no two files have one name");
    assert!(sampler.tally().displaced < model.requests() / 2, "{:?}", sampler.tally());
    assert_eq!(drawn(&model, 1).0, requests, "the same seed, the same stream");
    assert_ne!(drawn(&model, 2).0, requests);
}

#[test]
fn files_are_used_again_as_soon_as_in_the_trace() {
    let model = fitted(&copy(2, 1500));
    let (_, names, _) = drawn(&model, 1);
    let mut sampler = Sampler::new(Arc::clone(&model), 1).unwrap();
    let named = (0..).zip(names).map(|(id, name)| Object { id, name }).collect();
    let catalog = Catalog::of(&mut sampler, |_| named, |_| Ok(())).unwrap();
    let mut sampler = Sampler::new(Arc::clone(&model), 1).unwrap();
    let found = measure(&model, &mut sampler, catalog, u64::MAX).unwrap();
    for (name, most) in [("file", 0.3), ("state", 0.1), ("length", 0.3), ("seek", 0.08), ("size", 0.02)] {
        let d = model.dimension(name).unwrap();
        let marginal = model.marginal(d, None).unwrap();
        let had: HashMap<u64, u64> =
            marginal.keys.iter().copied().zip(marginal.counts.iter().copied()).collect();
        let apart: u64 = found[d]
            .iter()
            .map(|(code, n)| n.saturating_sub(had.get(&u64::from(*code)).copied().unwrap_or(0)))
            .sum();
        let apart = apart as f64 / model.requests() as f64;
        assert!(apart < most, "{name}: {apart}");
    }
}

/// Does what is drawn in memory, on the tree that is inferred from it: how many requests come to something else.
fn wrong(requests: &[Batch], names: &[String]) -> usize {
    let tree = tree::of(&mut Memory(requests.to_vec()), names).unwrap();
    // Bytes of files; directories are negative.
    let mut there: HashMap<&str, i64> = HashMap::from([(".", -1)]);
    for (path, entry) in &tree.entries {
        let size = if let Entry::File(size) = entry { *size as i64 } else { -1 };
        there.insert(path, size);
    }
    let mut open: HashMap<&str, i64> = HashMap::new();
    let above = |path: &str| path.rsplit_once('/').map_or(".".to_string(), |(above, _)| above.into());
    let mut wrong = 0;
    for batch in requests {
        for i in 0..batch.len() {
            let path = names[batch.object[i] as usize].as_str();
            let (known, placed) = (there.get(path).copied(), there.contains_key(&*above(path)));
            let end = batch.offset[i].max(0) + batch.size[i].max(0);
            let failed = batch.result[i] < 0;
            let open = open.entry(path).or_insert(0);
            let held = *open > 0;
            let works = match Op::from_code(batch.op[i]).unwrap() {
                Op::Mkdir => known.is_none() && placed,
                Op::Create => placed,
                // A read of nothing gets it anywhere.
                Op::Read => known.map_or(held, |size| size >= end || batch.size[i] == 0),
                Op::Write => known.is_some() || held,
                Op::Close => true,
                _ => known.is_some(),
            };
            wrong += usize::from(works == failed);
            match Op::from_code(batch.op[i]).unwrap() {
                _ if failed => {}
                Op::Mkdir => drop(there.insert(path, -1)),
                Op::Open => *open += 1,
                Op::Close => *open = (*open - 1).max(0),
                Op::Create => {
                    *open += 1;
                    there.insert(path, 0);
                }
                // What has lost its name is written on.
                Op::Write if known.is_none() => {}
                Op::Write => drop(there.insert(path, known.unwrap_or(0).max(end))),
                Op::Remove => drop(there.remove(path)),
                Op::Rename => {
                    let other = names[batch.other[i] as usize].as_str();
                    if let Some(size) = there.remove(path) {
                        there.insert(other, size);
                    }
                }
                _ => {}
            }
        }
    }
    wrong
}

#[test]
fn what_is_drawn_can_be_done_on_the_tree_that_it_asks_for() {
    for seed in 0..4 {
        let trace = copy(seed, 600);
        let mut names = vec![String::new(); trace.objects.len()];
        trace.objects.iter().for_each(|(name, &id)| names[id as usize] = tree::inside(name).unwrap());
        assert_eq!(wrong(std::slice::from_ref(&trace.batch), &names), 0, "the trace itself");
        let (requests, names, _) = drawn(&fitted(&trace), seed);
        assert_eq!(wrong(&requests, &names), 0);
    }
}

#[test]
fn two_loads_of_files_share_a_store_in_directories_of_their_own() {
    let (a, b) = (copy(1, 900), copy(2, 400));
    let parts = [fitted(&a), fitted(&b)];
    let half = (a.time / 2) as u64;
    let mut done = 0;
    let both = superposed(&parts, &[0, half as i64], 1, &mut |rows| {
        done = rows;
        Ok(())
    });
    let both = Arc::new(both.unwrap());
    assert_eq!((both.requests(), done), (parts[0].requests() + parts[1].requests(), both.requests()));
    assert!(both.header.is_of_files() && both.header.layer() == "file" && both.header.objects.is_empty());
    let (requests, names, _) = drawn(&both, 1);
    assert_eq!(counts(&requests), counts(&[a.batch.clone(), b.batch.clone()]));
    assert_eq!(wrong(&requests, &names), 0);
    let (new, all) = (names.len() as f64, (a.objects.len() + b.objects.len()) as f64);
    assert!((new / all - 1.0).abs() < 0.05, "{new} files, {all} in both traces");
    let nfs = Info { layer: "nfs".into(), ..Info::default() };
    let mut other = Model::clone(&parts[1]);
    other.set_source(&nfs);
    let error = superposed(&[Arc::clone(&parts[0]), Arc::new(other)], &[], 1, &mut |_| Ok(()));
    assert!(error.unwrap_err().to_string().contains("the layer file, the other of nfs"));
}

#[test]
fn dimensions_of_files_stay_together() {
    let fit = |files: bool, dimensions: &[&str]| {
        let dimensions = dimensions.iter().map(|text| text.parse().unwrap()).collect();
        Fitter::new(&FitOptions { files, dimensions, ..FitOptions::default() }).map(|_| ())
    };
    assert!(fit(true, &[]).is_ok() && fit(true, &["size=log2:4", "observed:flags"]).is_ok());
    for (files, wrong, what) in [
        (false, "file", "not object"),
        (false, "result", "not object"),
        (false, "given:previous(state)", "only kept of drawn requests of files"),
        (true, "sets:object", "not object"),
        (true, "observed:state", "no dimension sets the state"),
        (true, "given:previous(run)", "not kept"),
    ] {
        let error = fit(files, &[wrong]).unwrap_err().to_string();
        assert!(error.contains(what), "{wrong}: {error}");
    }
}
