//! Dimensions: a feature, the rule that puts it into buckets, and the role it plays.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::{FeatureId, Field};
use crate::schema::rule::{Rule, RuleSpec};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The dimensions of a model that is not told which to have. Cells are stored in the order of their codes,
/// so those that say most of the others come first: it is worth a tenth of the file.
const USUAL: [&str; 11] = [
    "object",
    "op",
    "resume",
    "reuse_distance",
    "region",
    "size",
    "given:previous(run)",
    "given:previous(op)",
    "op_jump",
    "align",
    "gap",
];

/// The same of requests of files. Their offsets are set by `reuse` and `seek`.
const USUAL_OF_FILES: [&str; 13] = [
    "op",
    "file",
    "state",
    "near",
    "length=exact+log2:1",
    "other",
    "result",
    "size",
    "given:previous(op)",
    "given:previous(state)",
    "seek",
    "reuse",
    "gap",
];

/// Those that are only observed, one after the other, where keys have no room for all; first those without which the
/// rest is drawn nearly as before.
const SPARE: [&str; 4] = ["previous(op)", "previous(run)", "reuse_distance", "align"];

/// The same of requests of files.
const SPARE_OF_FILES: [&str; 2] = ["reuse", "previous(op)"];

/// What a dimension is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It sets a field of the generated request.
    Sets,
    /// It is known before the request is drawn and chooses the slice to draw from.
    Given,
    /// It is described and compared, not generated.
    Observed,
}

/// Which dimension decides where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OffsetRule {
    /// A jump of at most one region sets the offset; for farther ones the region does.
    #[default]
    Near,
    /// Always the jump.
    Jump,
    /// Always the region.
    Region,
}

/// A dimension of a fitted model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// The feature, by name in the file.
    pub feature: FeatureId,
    /// What it is for.
    pub role: Role,
    /// How its numbers are put into buckets.
    pub rule: Rule,
    /// All its numbers were multiples of this power of two.
    pub grain: i64,
    /// The largest of them, which is in the middle of its bucket as a rule; drawn numbers stay below it.
    #[serde(default)]
    pub largest: Option<i64>,
    /// Unit of a user's feature, which readers may not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// A dimension as asked for: `size`, `size=log2:4`, `given:previous(op)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spec {
    /// The feature.
    pub feature: FeatureId,
    /// What it is for.
    pub role: Role,
    /// How its numbers are to be put into buckets.
    pub rule: RuleSpec,
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (role, rest) = match text.split_once(':') {
            Some(("sets", rest)) => (Some(Role::Sets), rest),
            Some(("given", rest)) => (Some(Role::Given), rest),
            Some(("observed", rest)) => (Some(Role::Observed), rest),
            Some((word, _)) if !word.contains('=') => {
                return Err(Error::new(ErrorKind::Asked, format!("{word:?} is not a role"))
                    .help("write sets:FEATURE, given:previous(FEATURE) or observed:FEATURE"));
            }
            _ => (None, text),
        };
        let (name, rule) = match rest.split_once('=') {
            Some((name, rule)) => (name, Some(rule)),
            None => (rest, None),
        };
        let feature: FeatureId = name.parse()?;
        let rule = rule.unwrap_or(feature.kind().rule).parse()?;
        let drawn = feature.kind().is_drawn() && !Field::WAITS.contains(&feature.kind().field);
        let usual = if drawn || feature.previous { Role::Sets } else { Role::Observed };
        let role = role.unwrap_or(usual);
        check_role(feature, role)?;
        let rule: RuleSpec = rule;
        if feature.kind().field == Field::Object
            && role == Role::Sets
            && rule.base != (Rule::Category { values: Vec::new() })
        {
            return Err(Error::new(ErrorKind::Asked, "objects are not numbers near each other")
                .help("write object=category"));
        }
        Ok(Spec { feature, role, rule })
    }
}

impl TryFrom<String> for Spec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Spec> for String {
    fn from(spec: Spec) -> String {
        let role = match spec.role {
            Role::Sets => "sets",
            Role::Given => "given",
            Role::Observed => "observed",
        };
        format!("{role}:{}={}", spec.feature, spec.rule)
    }
}

/// A given feature must be known before the request is; one that sets must belong to it.
fn check_role(feature: FeatureId, role: Role) -> Result<()> {
    match role {
        Role::Given if !feature.previous => {
            Err(Error::new(ErrorKind::Asked, format!("{feature} is not known before the request"))
                .help(format!("given:previous({feature}) is")))
        }
        Role::Sets if feature.previous => Err(Error::new(
            ErrorKind::Asked,
            format!("{feature} belongs to the previous request and cannot be set"),
        )
        .help(format!("write given:{feature} or observed:{feature}"))),
        Role::Given if feature.kind().field == Field::Seen => Err(Error::new(
            ErrorKind::Asked,
            format!("{feature} is only in the trace: of a drawn request nothing tells it"),
        )
        .help(format!("write observed:{feature}"))),
        Role::Given if feature.kept().is_none() => {
            Err(Error::new(ErrorKind::Asked, format!("{feature} is not kept of a drawn request"))
                .help(format!("write observed:{feature}")))
        }
        Role::Sets if !feature.kind().is_drawn() => Err(Error::new(
            ErrorKind::Asked,
            format!("{feature} is not drawn: it follows from the others or from the system"),
        )
        .help(format!("write observed:{feature}"))),
        _ => Ok(()),
    }
}

impl Spec {
    /// The dimensions of a model when none are asked for, with `over` put in their place or added; `files`: of one of
    /// requests of files.
    pub fn defaults(over: &[Spec], files: bool) -> Vec<Spec> {
        let usual: &[&str] = if files { &USUAL_OF_FILES } else { &USUAL };
        let mut specs: Vec<Spec> = usual.iter().map(|name| name.parse().expect("usual")).collect();
        // What is asked for takes the place of whatever would set the same.
        let field = |s: &Spec| s.feature.kind().field;
        let asked = |s: &Spec| over.iter().any(|o| o.role == Role::Sets && field(o) == field(s));
        specs.retain(|s| !asked(s) || over.iter().any(|o| o.feature == s.feature));
        for spec in over {
            match specs.iter_mut().find(|s| s.feature == spec.feature) {
                Some(old) => *old = spec.clone(),
                None => specs.push(spec.clone()),
            }
        }
        specs
    }

    /// Makes room in the keys of a model, `files`: of one of files: the next dimension that it can do without is only
    /// observed; answers which, if there was one that nobody asked for.
    pub(crate) fn spare(specs: &mut [Spec], asked: &[Spec], files: bool) -> Option<FeatureId> {
        let spare: &[&str] = if files { &SPARE_OF_FILES } else { &SPARE };
        let spare = spare.iter().map(|name| name.parse::<FeatureId>().expect("a feature"));
        let asked = |feature: &FeatureId| asked.iter().any(|spec| spec.feature == *feature);
        spare.filter(|feature| !asked(feature)).find(|&feature| {
            let found = specs.iter_mut().find(|s| s.feature == feature && s.role != Role::Observed);
            found.is_some_and(|spec| {
                spec.role = Role::Observed;
                true
            })
        })
    }
}

/// Checks a set of dimensions against an offset rule; used when fitting and when loading.
pub(crate) fn check_set(dimensions: &[(FeatureId, Role)], rule: OffsetRule) -> Result<()> {
    if dimensions.len() > 64 {
        return Err(Error::new(ErrorKind::Asked, format!("{} dimensions are too many", dimensions.len())));
    }
    for (i, &(feature, role)) in dimensions.iter().enumerate() {
        check_role(feature, role)?;
        if dimensions[..i].iter().any(|d| d.0 == feature) {
            return Err(Error::new(ErrorKind::Asked, format!("dimension {feature} is there twice")));
        }
        let same = |d: &&(FeatureId, Role)| d.1 == role && d.0.kind().field == feature.kind().field;
        if let (Role::Sets, Some(other)) = (role, dimensions[..i].iter().find(same)) {
            return Err(Error::new(ErrorKind::Asked, format!("{} and {feature} set the same", other.0))
                .help(format!("write observed:{feature}, or leave one out")));
        }
    }
    let sets = |field: Field| dimensions.iter().any(|d| d.1 == Role::Sets && d.0.kind().field == field);
    let need = |field: Field, name: &str| {
        if sets(field) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Asked, format!("no dimension sets the {name}")).help(format!(
                "{name} must have the role sets; the offset rule chooses between jump and region"
            )))
        }
    };
    need(Field::Op, "op")?;
    need(Field::Size, "size")?;
    need(Field::Gap, "gap")?;
    if Field::WAITS.into_iter().any(sets) {
        for (field, name) in Field::WAITS.into_iter().zip(["actor", "after", "think"]) {
            if !sets(field) {
                return Err(Error::new(ErrorKind::Asked, format!("no dimension sets {name}"))
                    .help("think times are drawn by sets:actor, sets:after and sets:think together"));
            }
        }
    }
    let of_files = |d: &&(FeatureId, Role)| d.1 == Role::Sets && d.0.kind().is_of_files();
    match dimensions.iter().find(of_files) {
        None => {
            need(Field::Object, "object")?;
            if sets(Field::Reuse) {
                return Err(Error::new(ErrorKind::Asked, "reuse sets offsets in files only").help(
                    "fit again with observed:reuse; reuse_distance keeps how often the blocks of a block trace come back",
                ));
            }
            let given = |d: &&(FeatureId, Role)| d.1 == Role::Given && d.0.kind().is_of_files();
            if let Some((feature, _)) = dimensions.iter().find(given) {
                return Err(Error::new(
                    ErrorKind::Asked,
                    format!("{feature} is only kept of drawn requests of files"),
                ));
            }
        }
        Some((feature, _)) if !sets(Field::File) || sets(Field::Object) => {
            return Err(Error::new(
                ErrorKind::Asked,
                format!("{feature} is of files, which the dimension file chooses, not object"),
            )
            .help(format!("write observed:{feature}, or leave out object and fit a trace of files")));
        }
        Some(_) => {
            let all = [(Field::State, "state"), (Field::Near, "near"), (Field::Length, "length")];
            all.into_iter().try_for_each(|(field, name)| need(field, name))?;
            let kept = [Field::Op, Field::State, Field::Size, Field::Gap];
            let lost = |d: &&(FeatureId, Role)| d.1 == Role::Given && !kept.contains(&d.0.kind().field);
            if let Some((feature, _)) = dimensions.iter().find(lost) {
                return Err(Error::new(
                    ErrorKind::Asked,
                    format!("{feature} is not kept of a drawn request of files"),
                )
                .help("give previous(op), previous(state), previous(size) or previous(gap)"));
            }
            if sets(Field::Think) {
                return Err(Error::new(
                    ErrorKind::Asked,
                    "models of files draw no think times: actors wait for files of others, too",
                )
                .help("fit without `think`"));
            }
            if rule != OffsetRule::Jump {
                return Err(Error::new(ErrorKind::Asked, "offsets in files are set by jumps alone")
                    .help("use the offset rule jump"));
            }
        }
    }
    match rule {
        OffsetRule::Near => need(Field::Jump, "jump").and(need(Field::Region, "region")),
        OffsetRule::Jump => need(Field::Jump, "jump"),
        OffsetRule::Region => need(Field::Region, "region"),
    }?;
    let extra = match rule {
        OffsetRule::Near => None,
        OffsetRule::Jump => Some((Field::Region, "region")),
        OffsetRule::Region => Some((Field::Jump, "jump")),
    };
    match extra {
        Some((field, name)) if sets(field) => Err(Error::new(
            ErrorKind::Asked,
            format!("two dimensions set the offset; {name} is one too many"),
        )
        .help(format!("write observed:{name}, or use the offset rule near"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_read_as_people_write_them() {
        let spec: Spec = "size=log2:4".parse().unwrap();
        assert_eq!((spec.role, spec.rule), (Role::Sets, "log2:4".parse().unwrap()));
        let spec: Spec = "given:previous(op)".parse().unwrap();
        assert_eq!((spec.role, spec.feature.to_string().as_str()), (Role::Given, "previous(op)"));
        let spec: Spec = "observed:jump=exact+log2:8".parse().unwrap();
        assert_eq!(spec.role, Role::Observed);
        assert_eq!("outstanding".parse::<Spec>().unwrap().role, Role::Observed);
        assert_eq!("think".parse::<Spec>().unwrap().role, Role::Observed);
        let wrong = ["sizes", "given:size", "sets:previous(op)", "taken:size", "size=log2:3"];
        for wrong in wrong.into_iter().chain(["sets:run", "sets:latency", "given:previous(think)"]) {
            assert!(wrong.parse::<Spec>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn exactly_one_rule_sets_the_offset() {
        let set = |over: &[&str]| -> Vec<(FeatureId, Role)> {
            let over: Vec<Spec> = over.iter().map(|t| t.parse().unwrap()).collect();
            Spec::defaults(&over, false).iter().map(|s| (s.feature, s.role)).collect()
        };
        assert!(check_set(&set(&[]), OffsetRule::Near).is_ok());
        assert!(check_set(&set(&[]), OffsetRule::Jump).is_err());
        assert!(check_set(&set(&["observed:region"]), OffsetRule::Jump).is_ok());
        assert!(check_set(&set(&["observed:region"]), OffsetRule::Near).is_err());
        assert!(check_set(&set(&["observed:size"]), OffsetRule::Near).is_err());
        assert!(check_set(&set(&["sets:actor", "sets:think"]), OffsetRule::Near).is_err());
        assert!(check_set(&set(&["sets:actor", "sets:think", "sets:after"]), OffsetRule::Near).is_ok());
    }
}
