//! Models stored as chains of small tables.

mod common;

use common::{Memory, copies, options, push, stream, whole};
use loadstone_model::distance::total_variation;
use loadstone_model::transform::Scale;
use loadstone_model::{FitOptions, Model, Sampler, fit};
use loadstone_trace::{Batch, NONE};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;

fn by_code(model: &Model, name: &str) -> loadstone_model::Cells {
    model.marginal(model.dimension(name).unwrap(), None).unwrap()
}

fn names(model: &Model) -> Vec<String> {
    model.header.dimensions.iter().map(|d| d.feature.to_string()).collect()
}

/// What links are given, by name of their dimension; the matrix is one more.
fn given(model: &Model, name: &str) -> Vec<String> {
    let names = names(model);
    let link =
        model.header.chain.as_ref().unwrap().links.iter().find(|l| names[l.dimension] == name).unwrap();
    let matrix = link.by_matrix.then(|| "matrix".to_string());
    let mut all: Vec<String> = link.given.iter().map(|&d| names[d].clone()).chain(matrix).collect();
    all.sort();
    all
}

#[test]
fn a_chain_is_smaller_and_draws_what_the_joint_table_says() {
    let joint = fit(&mut Memory(stream(7, 24_000)), &options()).unwrap();
    let chain = joint.factored(8.0).unwrap();
    assert!(
        chain.stored_cells() * 2 < joint.stored_cells(),
        "{} {}",
        chain.stored_cells(),
        joint.stored_cells()
    );
    // No table loses a request or gives one to another bucket, as long as slices are what earlier links dealt.
    for name in names(&joint) {
        let far = total_variation(&by_code(&joint, &name), &by_code(&chain, &name)).raw;
        assert!(far < 0.01, "{name}: {far}");
    }
    let op = joint.dimension("op").unwrap();
    for m in 0..joint.matrices.len() {
        assert_eq!(joint.marginal(op, Some(m)).unwrap(), chain.marginal(op, Some(m)).unwrap());
    }
    let mut sampler = Sampler::new(Arc::new(chain), 3).unwrap();
    let again = fit(&mut Memory(whole(&mut sampler)), &options()).unwrap();
    assert_eq!(again.requests(), 24_000);
    let tally = sampler.tally();
    assert!(tally.backed_off < 1_200 && tally.displaced < 2_400, "{tally:?}");
    for name in ["op", "size", "gap", "previous(op)", "previous(run)"] {
        let far = total_variation(&by_code(&joint, name), &by_code(&again, name)).raw;
        assert!(far < 0.05, "{name}: {far}");
    }
}

#[test]
fn what_depends_on_what_is_found() {
    // Sizes and gaps of this stream depend on the phase, and on nothing else once the phase is known.
    let model = fit(&mut Memory(stream(5, 40_000)), &options()).unwrap();
    let chain = model.factored(8.0).unwrap();
    assert_eq!(given(&chain, "op"), ["matrix"]);
    // An object is the same coin for every request.
    assert!(given(&chain, "object").is_empty(), "{:?}", given(&chain, "object"));
    // Either the matrix or the op tells the phase. A flush has no size.
    let size = given(&chain, "size");
    assert!(size.contains(&"op".to_string()) && size.len() <= 2, "{size:?}");
    let lost = chain.header.chain.as_ref().unwrap().lost_bits;
    assert!((0.0..3.0).contains(&lost), "{lost}");
    // What a chain lost is lost to the chain that is made of it, too.
    let again = chain.factored(8.0).unwrap();
    let told = |model: &Model| model.header.chain.clone().map(|chain| (chain.lost_bits, chain.joint_cells));
    let (first, second) = (told(&chain).unwrap(), told(&again).unwrap());
    assert!((first.0 - second.0).abs() < 0.05 && first.1 == second.1, "{first:?} {second:?}");
    // At a price that nothing is worth, dimensions are only given what costs no cell.
    let alone = model.factored(1e9).unwrap();
    let known: usize = names(&model).iter().map(|name| given(&alone, name).len()).sum();
    let (few, many) = (alone.stored_cells(), chain.stored_cells());
    assert!(few < many && known < names(&model).len(), "{few} {many} {known}");
}

/// Requests of which those that continue the one before seldom come soon after it, and others often.
fn tied(requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
    let (mut b, mut time, mut end) = (Batch::default(), 0i64, 0i64);
    for _ in 0..requests {
        let goes_on = rng.random_bool(0.5);
        let offset = if goes_on { end } else { rng.random_range(0..1i64 << 22) * 4096 };
        // Whether a gap is short depends on that; how long it is then does not.
        let short = rng.random_bool(if goes_on { 0.05 } else { 0.6 });
        time += (if short { 1i64 << 10 } else { 1 << 20 }) << rng.random_range(0..10);
        b.time.push(time);
        b.op.push(0);
        b.object.push(0);
        b.offset.push(offset);
        b.size.push(4096);
        b.latency.push(NONE);
        b.flags.push(0);
        b.actor.push(0);
        end = offset + 4096;
    }
    vec![b]
}

/// Of requests that continue the one before, and of others, those that come within a millisecond, as shares.
fn short(batches: &[Batch]) -> [f64; 2] {
    let mut counts = [[0.0; 2]; 2];
    let (mut time, mut end) = (0, 0);
    for b in batches {
        for at in 0..b.len() {
            let (goes_on, short) = (b.offset[at] == end, b.time[at] - time < 1 << 20);
            counts[usize::from(!goes_on)][usize::from(short)] += 1.0;
            (time, end) = (b.time[at], b.offset[at] + b.size[at]);
        }
    }
    counts.map(|[long, short]| short / (long + short))
}

#[test]
fn what_a_table_would_cost_too_much_for_one_number_tells() {
    let stream = tied(20_000);
    let [before, others] = short(&stream);
    let model = fit(&mut Memory(stream), &options()).unwrap().factored(300.0).unwrap();
    let names = names(&model);
    let links = &model.header.chain.as_ref().unwrap().links;
    let gap = links.iter().find(|link| names[link.dimension] == "gap").unwrap();
    assert!(!given(&model, "gap").contains(&"resume".to_string()));
    let tie = gap.tie.as_ref().unwrap();
    assert_eq!(names[tie.dimension], "resume");
    let odds = (before / (1.0 - before)) / (others / (1.0 - others));
    assert!((tie.odds / odds).ln().abs() < 0.3, "{} {odds}", tie.odds);
    let gaps = by_code(&model, "gap");
    let mut loose = model.header.clone();
    loose.chain.as_mut().unwrap().links.iter_mut().for_each(|link| link.tie = None);
    let columns: Vec<Vec<i64>> = model.stored_columns().into_iter().map(|(_, column)| column).collect();
    let loose = Model::from_columns(&serde_json::to_string(&loose).unwrap(), &columns).unwrap();
    assert_eq!(by_code(&loose, "gap"), gaps, "a tie changes no table");
    let drawn = |model: Model| short(&whole(&mut Sampler::new(Arc::new(model), 1).unwrap()));
    let [tied, loose] = [drawn(model), drawn(loose)].map(|[before, others]| others - before);
    assert!((tied - (others - before)).abs() < 0.08, "{tied} {}", others - before);
    assert!(loose < 0.1, "{loose}");
}

/// Phases of small and of large requests, reads and writes with runs of their own: in the one a tenth of the requests
/// continue the one before, in the other three quarters.
fn phases(requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(23);
    let (mut b, mut op, mut end) = (Batch::default(), 0, 0i64);
    for at in 0..requests as i64 {
        let is_copy = at / 2000 % 2 == 1;
        let goes_on = rng.random_bool(if is_copy { 0.75 } else { 0.1 });
        if !goes_on {
            op = u8::from(rng.random_bool(0.5));
            end = rng.random_range(0..1i64 << 22) * 4096;
        }
        b.time.push(at * 1_000_000);
        b.op.push(op);
        b.object.push(0);
        b.offset.push(end);
        end += if is_copy { 65536 } else { 4096 };
        b.size.push(end - b.offset[at as usize]);
        b.latency.push(NONE);
        b.flags.push(0);
        b.actor.push(0);
    }
    vec![b]
}

/// Shares of the requests of 4 KiB and of the others that continue the one before.
fn continued(batches: &[Batch]) -> [f64; 2] {
    let mut counts = [[0.0; 2]; 2];
    let (mut op, mut end) = (0, NONE);
    for b in batches {
        for at in 0..b.len() {
            let goes_on = b.offset[at] == end && b.op[at] == op;
            counts[usize::from(b.size[at] > 4096)][usize::from(goes_on)] += 1.0;
            (op, end) = (b.op[at], b.offset[at] + b.size[at]);
        }
    }
    counts.map(|[not, on]| on / (not + on))
}

#[test]
fn phases_run_on_as_often_as_they_did() {
    let stream = phases(40_000);
    let real = continued(&stream);
    assert!(real[0] < 0.15 && real[1] > 0.7, "{real:?}");
    let model = fit(&mut Memory(stream), &options()).unwrap().factored(2000.0).unwrap();
    assert!(model.matrices.len() > 1);
    assert!(!given(&model, "resume").contains(&"matrix".to_string()), "{:?}", given(&model, "resume"));
    let names = names(&model);
    let resume = |model: &Model| {
        let links = &model.header.chain.as_ref().unwrap().links;
        links.iter().position(|link| names[link.dimension] == "resume").unwrap()
    };
    let at = resume(&model);
    let shares = &model.header.chain.as_ref().unwrap().links[at].continues;
    assert_eq!(shares.len(), model.matrices.len());
    // What continues is of the op before, and no table has changed for it.
    let mut loose = model.header.clone();
    loose.chain.as_mut().unwrap().links[at].continues.clear();
    let columns: Vec<Vec<i64>> = model.stored_columns().into_iter().map(|(_, column)| column).collect();
    let again = |header| Model::from_columns(&serde_json::to_string(header).unwrap(), &columns);
    let loose = again(&loose).unwrap();
    for name in ["op", "resume", "previous(op)", "previous(run)"] {
        assert_eq!(by_code(&loose, name), by_code(&model, name), "{name}");
    }
    let mut few = model.header.clone();
    few.chain.as_mut().unwrap().links[at].continues.pop();
    let error = again(&few).unwrap_err().to_string();
    assert!(error.contains("chain is damaged") && error.contains("shares"), "{error}");
    let drawn = |model: Model| continued(&whole(&mut Sampler::new(Arc::new(model), 1).unwrap()));
    let [told, loose] = [drawn(model), drawn(loose)];
    for (drawn, real) in told.iter().zip(real) {
        assert!((drawn - real).abs() < 0.06, "{told:?} {real:?}");
    }
    assert!(loose[1] - loose[0] < (real[1] - real[0]) / 2.0, "{loose:?}");
}

/// Phases of single requests, of pairs, and of runs of a hundred.
fn runs(requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(29);
    let (mut b, mut end, mut left) = (Batch::default(), 0i64, 0);
    for at in 0..requests as i64 {
        let phase = at / 2000 % 3;
        if left == 0 {
            left = [1, 2, 100][phase as usize];
            end = rng.random_range(0..1i64 << 22) * 4096;
        }
        let size = 4096 << (2 * phase);
        push(&mut b, at * 1_000_000, 1, end, size);
        (end, left) = (end + size, left - 1);
    }
    vec![b]
}

/// Requests of each size by the length of the run they are in: single ones, up to 10, and longer ones.
fn lengths(batches: &[Batch]) -> [[f64; 3]; 3] {
    let mut found = [[0.0; 3]; 3];
    let (mut end, mut run, mut of) = (NONE, 0, 0);
    let mut note = |run: usize, of: usize| {
        found[of][usize::from(run > 1) + usize::from(run > 10)] += run as f64;
    };
    for b in batches {
        for (&offset, &size) in b.offset.iter().zip(&b.size) {
            let size_of = usize::from(size > 4096) + usize::from(size > 4 * 4096);
            if offset != end || size_of != of {
                note(run, of);
                (run, of) = (0, size_of);
            }
            (run, end) = (run + 1, offset + size);
        }
    }
    note(run, of);
    found
}

#[test]
fn runs_are_as_long_as_they_were_where_no_table_says_so() {
    let stream = runs(30_000);
    let real = lengths(&stream);
    let joint = fit(&mut Memory(stream), &options()).unwrap();
    // The dearer a cell, the less the tables say about which requests continue runs.
    for cell_bits in [1000.0, 3000.0, 12_000.0] {
        let model = joint.factored(cell_bits).unwrap();
        let by = ["resume", "previous(run)"].map(|name| given(&model, name));
        assert!(!by[0].contains(&"previous(run)".to_string()), "{by:?}");
        for name in ["op", "previous(run)", "resume"] {
            assert_eq!(by_code(&model, name), by_code(&joint, name), "{name}");
        }
        let mut sampler = Sampler::new(Arc::new(model), 1).unwrap();
        let drawn = lengths(&whole(&mut sampler));
        for (drawn, real) in drawn.as_flattened().iter().zip(real.as_flattened()) {
            assert!((drawn - real).abs() < 1500.0, "{by:?} {drawn} {real}");
        }
        assert!(sampler.tally().backed_off < 2400, "{by:?} {:?}", sampler.tally());
    }
}

#[test]
fn joint_tables_stay_where_no_chain_is_smaller() {
    // With stack distances there are more cells, and a chain is smaller.
    let plain = FitOptions { without: vec!["reuse_distance".parse().unwrap()], ..options() };
    let joint = fit(&mut Memory(copies(4_000)), &plain).unwrap();
    let same = joint.factored(1.0).unwrap();
    assert!(same.header.chain.is_none());
    assert_eq!(same, joint);
}

#[test]
fn a_file_is_the_model_that_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chain.mdh");
    let observed = ["observed:jump".parse().unwrap()];
    let options = FitOptions { cell_bits: Some(6.0), dimensions: observed.into(), ..options() };
    let chain = fit(&mut Memory(stream(3, 20_000)), &options).unwrap();
    chain.save(&path, false).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!(loaded.columns(), chain.columns());
    assert_eq!(loaded.stored_columns(), chain.stored_columns());
    assert_eq!(loaded.header, chain.header);
    let draw = |model: Model| whole(&mut Sampler::new(Arc::new(model), 1).unwrap());
    assert_eq!(draw(loaded), draw(chain));
}

#[test]
fn changes_leave_it_a_chain() {
    let options = FitOptions { cell_bits: Some(6.0), ..options() };
    let chain = fit(&mut Memory(stream(3, 20_000)), &options).unwrap();
    let doubled = chain.scaled(&Scale { rate: Some(2.0), ..Scale::default() }).unwrap();
    assert_eq!(doubled.requests(), 40_000);
    let public = chain.published(10).unwrap();
    for changed in [&doubled, &public] {
        // Ties are of codes, which a change may number anew.
        let links = |model: &Model| {
            let links = model.header.chain.as_ref().unwrap().links.iter();
            links.map(|link| (link.dimension, link.given.clone(), link.by_matrix)).collect::<Vec<_>>()
        };
        assert_eq!(links(changed), links(&chain));
        assert!(changed.stored_cells() * 2 < changed.cells());
    }
}

#[test]
fn damaged_chains_are_refused() {
    let model = fit(&mut Memory(stream(3, 4_000)), &options()).unwrap().factored(6.0).unwrap();
    let columns: Vec<Vec<i64>> = model.stored_columns().into_iter().map(|(_, column)| column).collect();
    let header = serde_json::to_value(&model.header).unwrap();
    assert!(Model::from_columns(&header.to_string(), &columns).is_ok());
    let links = header["chain"]["links"].as_array().unwrap().len();
    let change = |path: &str, value: serde_json::Value| {
        let mut header = header.clone();
        *header.pointer_mut(path).unwrap() = value;
        header
    };
    let mut short = header.clone();
    short["chain"]["links"].as_array_mut().unwrap().pop();
    let last = format!("/chain/links/{}/dimension", links - 1);
    let mut shared = header.clone();
    shared["chain"]["links"][0].as_object_mut().unwrap().remove("by_matrix");
    let mut forward = header.clone();
    forward["chain"]["links"][1]["given"] =
        serde_json::json!([header["chain"]["links"][links - 1]["dimension"]]);
    let mut tied = header.clone();
    tied["chain"]["links"][1]["tie"] = serde_json::json!({
        "dimension": header["chain"]["links"][links - 1]["dimension"], "code": 1, "below": 2, "odds": 2.0
    });
    let mut against = tied.clone();
    against["chain"]["links"][1]["tie"]["dimension"] = header["chain"]["links"][0]["dimension"].clone();
    assert!(Model::from_columns(&against.to_string(), &columns).is_ok());
    against["chain"]["links"][1]["tie"]["odds"] = 0.0.into();
    let mut continues = header.clone();
    continues["chain"]["links"][0]["continues"] = serde_json::json!([1, 2]);
    let mut twice = header.clone();
    twice["chain"]["links"][3]["given"] = vec![header["chain"]["links"][0]["dimension"].clone(); 2].into();
    for wrong in [
        short,
        shared,
        forward,
        twice,
        tied,
        against,
        continues,
        change(&last, 999.into()),
        change(&last, header["chain"]["links"][0]["dimension"].clone()),
    ] {
        let error = Model::from_columns(&wrong.to_string(), &columns).unwrap_err().to_string();
        assert!(error.contains("chain is damaged"), "{error}");
    }
    // Cells that are not there, of a matrix that is not there, or not as many as the windows have.
    let rows = |keep: &dyn Fn(usize) -> bool| -> Vec<Vec<i64>> {
        let kept = |c: &Vec<i64>| (0..c.len()).filter(|&row| keep(row)).map(|row| c[row]).collect();
        columns.iter().map(kept).collect()
    };
    let refused =
        |columns: &[Vec<i64>]| Model::from_columns(&header.to_string(), columns).unwrap_err().to_string();
    assert!(refused(&rows(&|row| columns[1][row] != links as i64 - 1)).contains("is empty"));
    assert!(refused(&rows(&|row| row > 0)).contains("damaged"));
    let mut elsewhere = columns.clone();
    elsewhere[0][0] = 4_000;
    assert!(refused(&elsewhere).contains("a matrix that no window uses"));
    for bits in [0.0, -1.0, f64::NAN] {
        assert!(model.factored(bits).is_err());
    }
}
