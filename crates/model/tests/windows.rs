//! Windows of different lengths: short where much happens, joined where little does.

mod common;

use common::{Memory, push, stream, whole};
use loadstone_model::{FitOptions, Model, Sampler, fit};
use loadstone_trace::Batch;
use proptest::prelude::*;
use std::sync::Arc;

const SECOND: i64 = 1_000_000_000;

/// Stretches of so many requests, so far apart (ns).
fn stretches(stretches: &[(usize, i64)]) -> Vec<Batch> {
    let (mut b, mut time) = (Batch::default(), 0);
    for &(requests, apart) in stretches {
        for i in 0..requests as i64 {
            push(&mut b, time, u8::from(i % 3 == 0), i % 1000 * 4096, 4096);
            time += apart;
        }
    }
    vec![b]
}

/// Requests of a stream in each window of a model.
fn counted(model: &Model, requests: &[Batch]) -> Vec<u64> {
    let starts = model.header.windows.starts();
    let mut counts = vec![0; starts.len() - 1];
    for time in requests.iter().flat_map(|batch| &batch.time) {
        counts[starts.partition_point(|start| start <= time) - 1] += 1;
    }
    counts
}

/// A model of a stream, whose windows must be as long as they may be and no longer.
fn joined(requests: &[Batch], join: u64, group: u64) -> Arc<Model> {
    let options = FitOptions { window_ns: Some(SECOND), join, group: Some(group), ..FitOptions::default() };
    let model = fit(&mut Memory(requests.to_vec()), &options).unwrap();
    let line = &model.header.windows;
    assert_eq!(line.counts, counted(&model, requests));
    let last = requests.iter().flat_map(|batch| &batch.time).max().unwrap();
    assert_eq!(line.span_ns(), (last / SECOND + 1) * SECOND, "the last window is that of the last request");
    let plain = fit(&mut Memory(requests.to_vec()), &FitOptions { join: 1, ..options.clone() }).unwrap();
    let every = |at: u64| plain.header.windows.counts.get(at as usize).copied().unwrap_or(0);
    let sum = |from: u64, length: u64| (from..from + length).map(every).sum::<u64>();
    let until = (*last / SECOND) as u64 + 1;
    // Where a window with requests must begin and how long it must be: halves of a block, until one is calm; each by
    // itself where more requests are there than wait to be counted.
    let part = |at: u64| {
        if sum(at / join * join, join) >= 1 << 16 {
            return (at, 1);
        }
        let (mut start, mut length) = (at / join * join, join.min(until - at / join * join));
        while length > 1 && sum(start, length) >= group {
            let half = length.div_ceil(2);
            (start, length) = if at < start + half { (start, half) } else { (start + half, length - half) };
        }
        (start, length)
    };
    let mut start = 0;
    for (length, &count) in line.lengths().zip(&line.counts) {
        if count > 0 {
            assert_eq!((start, length), part(start), "as long as it may be");
        }
        start += length;
    }
    Arc::new(model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn only_calm_windows_are_joined(
        parts in proptest::collection::vec((1usize..300, prop_oneof![1_000i64..4_000_000_000, Just(90 * SECOND)]), 1..8),
        join in 1u64..12,
        group in 3u64..200,
    ) {
        joined(&stretches(&parts), join, group);
    }
}

#[test]
fn a_block_too_full_to_wait_is_not_joined() {
    // More than wait to be counted, in the third of four windows that could be one; and again over two of them.
    let requests =
        stretches(&[(20, SECOND / 10), (150_000, 5_000), (1, SECOND), (30, SECOND / 10), (200_000, 8_000)]);
    let model = joined(&requests, 4, 100_000);
    assert!(model.header.windows.counts.iter().any(|count| *count > 100_000));
}

#[test]
fn windows_of_all_lengths_keep_their_requests_when_drawn() {
    let requests =
        stretches(&[(300, SECOND / 3), (5_000, 400_000), (300, SECOND / 2), (1, 500 * SECOND), (90, SECOND)]);
    let model = joined(&requests, 8, 64);
    assert!(model.header.windows.lengths().max() > Some(400), "what is idle is one window");
    assert_eq!(model.header.windows.longest(), 8);
    assert!(model.header.windows.counts.len() < 150);
    let dir = tempfile::tempdir().unwrap();
    model.save(&dir.path().join("a.mdh"), false).unwrap();
    let model = Arc::new(Model::load(&dir.path().join("a.mdh")).unwrap());
    let drawn = whole(&mut Sampler::new(Arc::clone(&model), 3).unwrap());
    assert_eq!(counted(&model, &drawn), model.header.windows.counts);
    let public = model.published(10).unwrap();
    assert_eq!(public.header.windows.lengths, model.header.windows.lengths);
    assert_eq!(public.span_ns(), model.span_ns());
}

#[test]
fn phases_begin_where_they_were_asked_to() {
    let options = FitOptions {
        window_ns: Some(SECOND),
        join: 8,
        group: Some(1_000),
        boundaries_ns: vec![11 * SECOND, 40 * SECOND],
        ..FitOptions::default()
    };
    let model = fit(&mut Memory(stretches(&[(60, SECOND)])), &options).unwrap();
    let starts = model.header.windows.starts();
    let begins: Vec<i64> =
        model.phases().iter().map(|phase| starts[phase.windows.start as usize] / SECOND).collect();
    assert_eq!(begins, [0, 11, 40]);
    let lengths: Vec<u64> = model.header.windows.lengths().collect();
    assert_eq!(lengths, [8, 2, 1, 1, 4, 8, 8, 8, 8, 8, 4]);
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let options = FitOptions { window_ns: Some(SECOND), join: 4, ..FitOptions::default() };
    for join in [0, u64::MAX] {
        let wrong = FitOptions { join, ..options.clone() };
        assert!(fit(&mut Memory(stream(1, 100)), &wrong).unwrap_err().to_string().contains("joined"));
    }
    let alone = FitOptions { group: Some(0), ..options.clone() };
    assert!(fit(&mut Memory(stream(1, 100)), &alone).unwrap_err().to_string().contains("joined"));
    let model = fit(&mut Memory(stretches(&[(100, SECOND)])), &options).unwrap();
    let columns: Vec<Vec<i64>> = model.stored_columns().into_iter().map(|(_, column)| column).collect();
    let with = |lengths: &[(u64, u64)]| {
        let mut header = model.header.clone();
        header.windows.lengths = lengths.to_vec();
        Model::from_columns(&serde_json::to_string(&header).unwrap(), &columns)
    };
    assert_eq!(with(&model.header.windows.lengths).unwrap(), model);
    let n = model.header.windows.counts.len() as u64;
    for wrong in [
        vec![(n - 1, 4)],
        vec![(n, 0)],
        vec![(0, 4), (n, 4)],
        vec![(n, u64::MAX)],
        vec![(u64::MAX, 1), (n + 1, 1)],
        vec![(n, i64::MAX as u64 / SECOND as u64)],
    ] {
        assert!(with(&wrong).unwrap_err().to_string().contains("windows"), "{wrong:?}");
    }
}
