//! A factored model: the same histogram as a chain of smaller tables.

mod common;

use common::{Memory, copies, options, whole};
use loadstone_model::distance::total_variation;
use loadstone_model::{Model, Sampler, fit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model with what a request is in one table, given the request before, and where and when it comes in
/// a second one that is also given the op and the object.
fn factored(model: &Model) -> Model {
    let names: Vec<String> = model.header.dimensions.iter().map(|d| d.feature.to_string()).collect();
    let at = |wanted: &[&str]| -> Vec<usize> {
        (0..names.len()).filter(|&d| wanted.contains(&&*names[d])).collect()
    };
    let before = at(&["previous(op)", "previous(run)"]);
    let what = at(&["object", "op", "size", "previous(op)", "previous(run)"]);
    let given = at(&["object", "op", "previous(op)", "previous(run)"]);
    let place: Vec<usize> = (0..names.len()).filter(|d| !what.contains(d) || given.contains(d)).collect();
    let mut cells: BTreeMap<(i64, usize, Vec<i64>), i64> = BTreeMap::new();
    let columns: Vec<Vec<i64>> = model.columns().into_iter().map(|(_, column)| column).collect();
    let count = columns.last().unwrap();
    for (row, &matrix) in columns[0].iter().enumerate() {
        for (table, dimensions) in [&what, &place].into_iter().enumerate() {
            let code = |d: usize| if dimensions.contains(&d) { columns[d + 2][row] } else { -1 };
            *cells.entry((matrix, table, (0..names.len()).map(code).collect())).or_default() += count[row];
        }
    }
    let mut out = vec![Vec::new(); names.len() + 3];
    for ((matrix, table, codes), count) in cells {
        out[0].push(matrix);
        out[1].push(table as i64);
        codes.into_iter().enumerate().for_each(|(d, code)| out[d + 2].push(code));
        out[names.len() + 2].push(count);
    }
    let mut header = serde_json::to_value(&model.header).unwrap();
    header["tables"] = serde_json::json!([
        {"dimensions": what, "given": before},
        {"dimensions": place, "given": given},
    ]);
    Model::from_columns(&header.to_string(), &out).unwrap()
}

#[test]
fn a_chain_draws_what_the_joint_table_says() {
    let joint = fit(&mut Memory(copies(24_000)), &options()).unwrap();
    let chain = factored(&joint);
    let dir = tempfile::tempdir().unwrap();
    chain.save(&dir.path().join("chain.mdh"), false).unwrap();
    let chain = Model::load(&dir.path().join("chain.mdh")).unwrap();
    let mut sampler = Sampler::new(Arc::new(chain), 3).unwrap();
    let again = fit(&mut Memory(whole(&mut sampler)), &options()).unwrap();
    assert_eq!(again.requests(), 24_000);
    let tally = sampler.tally();
    assert!(tally.backed_off < 240 && tally.displaced < 2_400, "{tally:?}");
    for name in ["op", "object", "size", "gap", "previous(op)", "previous(run)"] {
        let by_code = |m: &Model| m.marginal(m.dimension(name).unwrap(), None).unwrap();
        let far = total_variation(&by_code(&joint), &by_code(&again)).raw;
        assert!(far < 0.05, "{name}: {far}");
    }
}
