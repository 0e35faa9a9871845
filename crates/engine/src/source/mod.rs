//! Where requests come from, and where on the targets they go.

pub mod fetch;
pub mod open;
pub mod placement;
pub mod plain;
pub mod random;
pub mod random_map;
pub mod skew;
pub mod uniform;
pub mod variables;
