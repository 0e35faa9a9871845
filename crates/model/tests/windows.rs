//! Windows and phases on the time line.

mod common;

use common::{Memory, push, whole};
use loadstone_model::{FitOptions, Model, Sampler, fit};
use loadstone_trace::Batch;
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

#[test]
fn windows_keep_their_requests_when_drawn() {
    // In the second stretch more requests than wait to be counted are in one window.
    let requests =
        stretches(&[(300, SECOND / 3), (150_000, 5_000), (300, SECOND / 2), (1, 500 * SECOND), (90, SECOND)]);
    let options = FitOptions { window_ns: Some(SECOND), group: Some(64), ..FitOptions::default() };
    let model = Arc::new(fit(&mut Memory(requests.clone()), &options).unwrap());
    assert_eq!(model.header.windows.counts, counted(&model, &requests));
    let last = requests.iter().flat_map(|batch| &batch.time).max().unwrap();
    assert_eq!(model.span_ns(), (last / SECOND + 1) * SECOND, "the last window is that of the last request");
    let drawn = whole(&mut Sampler::new(Arc::clone(&model), 3).unwrap());
    assert_eq!(counted(&model, &drawn), model.header.windows.counts);
}

#[test]
fn phases_begin_where_they_were_asked_to() {
    let options = FitOptions {
        window_ns: Some(SECOND),
        group: Some(1_000),
        boundaries_ns: vec![11 * SECOND, 40 * SECOND],
        ..FitOptions::default()
    };
    let model = fit(&mut Memory(stretches(&[(60, SECOND)])), &options).unwrap();
    let starts = model.header.windows.starts();
    let begins: Vec<i64> =
        model.phases().iter().map(|phase| starts[phase.windows.start as usize] / SECOND).collect();
    assert_eq!(begins, [0, 11, 40]);
}

#[test]
fn windows_that_reach_beyond_all_time_are_refused() {
    let options = FitOptions { window_ns: Some(SECOND), ..FitOptions::default() };
    let model = fit(&mut Memory(stretches(&[(100, SECOND)])), &options).unwrap();
    let columns: Vec<Vec<i64>> = model.stored_columns().into_iter().map(|(_, column)| column).collect();
    let with = |length_ns: i64| {
        let mut header = model.header.clone();
        header.windows.length_ns = length_ns;
        Model::from_columns(&serde_json::to_string(&header).unwrap(), &columns)
    };
    assert_eq!(with(SECOND).unwrap(), model);
    for wrong in [0, -1, i64::MAX / 2] {
        assert!(with(wrong).unwrap_err().to_string().contains("windows"), "{wrong}");
    }
}
