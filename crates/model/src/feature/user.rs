//! Features that a program brings along, by names of their own.
//!
//! Only observed: what is drawn is drawn by the features of the table. A model that was fitted with such a feature is
//! read without it, too; its numbers are then those of the file.

use super::{Feature, Field, Kind, Rows};
use crate::error::{Error, ErrorKind, Result};
use loadstone_trace::NONE;
use std::sync::{PoisonError, RwLock};

/// How the names of such features begin.
pub const PREFIX: &str = "user.";

/// Most that are kept: each name costs a little memory for good.
const MOST: usize = 1 << 12;

/// Starts a feature at the beginning of a stream.
pub type Start = Box<dyn Fn() -> Box<dyn Feature> + Send + Sync>;

/// A feature of a name.
pub(super) struct User {
    pub kind: Kind,
    /// `None`: only its name is known, from a file.
    pub start: Option<Start>,
}

static USERS: RwLock<Vec<&'static User>> = RwLock::new(Vec::new());

/// What stands for a feature of which only the name is known.
struct Absent;

impl Feature for Absent {
    fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.resize(rows.len(), NONE);
    }
}

/// Makes a feature known, in place of one of the same name. `rule` is its bucket rule when none is asked for.
///
/// # Errors
/// When the name is not `user.` and a word, the rule is none, or there are too many.
pub fn register(name: &str, unit: &str, signed: bool, rule: &str, start: Start) -> Result<()> {
    rule.parse::<crate::RuleSpec>()?;
    add(name, unit, signed, rule, Some(start)).map(|_| ())
}

fn add(name: &str, unit: &str, signed: bool, rule: &str, start: Option<Start>) -> Result<usize> {
    let word = name.strip_prefix(PREFIX).unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if word.is_empty() || word.len() > 64 || !word.chars().all(fits) {
        return Err(Error::new(ErrorKind::Asked, format!("{name:?} is no name of a feature"))
            .help(format!("it must be {PREFIX} and letters, digits and underscores, 64 at most")));
    }
    let mut users = USERS.write().unwrap_or_else(PoisonError::into_inner);
    if users.len() >= MOST {
        return Err(Error::new(ErrorKind::Asked, format!("more than {MOST} features of users"))
            .help("start the program anew"));
    }
    // They are never dropped, as identifiers of features refer to them; registering is rare.
    let leaked = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let kind = Kind {
        name: leaked(name),
        field: Field::Seen,
        unit: leaked(unit),
        signed,
        rule: leaked(rule),
        make: |_| Box::new(Absent),
    };
    users.push(Box::leak(Box::new(User { kind, start })));
    Ok(users.len() - 1)
}

/// The feature with this number.
pub(super) fn get(number: usize) -> &'static User {
    USERS.read().unwrap_or_else(PoisonError::into_inner)[number]
}

/// The newest feature of a name.
pub(super) fn find(name: &str) -> Option<usize> {
    let users = USERS.read().unwrap_or_else(PoisonError::into_inner);
    users.iter().rposition(|user| user.kind.name == name)
}

/// The feature of a name in a file, known or not.
pub(super) fn find_or_absent(name: &str) -> Result<usize> {
    find(name).map_or_else(|| add(name, "", false, "log2:1", None), Ok)
}

/// Every feature that can be computed, the newest of each name.
pub(super) fn all() -> Vec<&'static Kind> {
    let users = USERS.read().unwrap_or_else(PoisonError::into_inner);
    let newest = |i: usize| !users[i + 1..].iter().any(|other| other.kind.name == users[i].kind.name);
    (0..users.len()).filter(|&i| newest(i) && users[i].start.is_some()).map(|i| &users[i].kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::FeatureId;

    struct Doubled;

    impl Feature for Doubled {
        fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
            out.clear();
            out.extend(rows.size.iter().map(|size| 2 * size));
        }
    }

    #[test]
    fn names_are_found_once_they_are_known() {
        assert!("user.doubled".parse::<FeatureId>().is_err());
        let id = FeatureId::try_from("user.doubled".to_owned()).unwrap();
        assert!(id.kind().field == Field::Seen && !all().iter().any(|kind| kind.name == "user.doubled"));
        register("user.doubled", "byte", false, "log2:4", Box::new(|| Box::new(Doubled))).unwrap();
        let id: FeatureId = "previous(user.doubled)".parse().unwrap();
        assert_eq!((id.to_string().as_str(), id.kind().rule), ("previous(user.doubled)", "log2:4"));
        assert!(all().iter().any(|kind| kind.name == "user.doubled"));
        let start = || -> Box<dyn Feature> { Box::new(Doubled) };
        for wrong in ["doubled", "user.", "user.a b", "user.size)"] {
            assert!(register(wrong, "", false, "log2:1", Box::new(start)).is_err(), "{wrong}");
        }
        assert!(register("user.x", "", false, "log3", Box::new(start)).is_err());
    }
}
