//! Rules of the house: over `cargo metadata` (licences, sources, unused dependencies) and over the text of the
//! workspace.

mod licence;
mod metadata;
mod sources;
mod tidy;

use std::path::Path;

pub use licence::is_allowed;
pub use metadata::{Dependency, Metadata, Package};
pub use tidy::untidy;

/// What is wrong with the dependencies, a line each.
#[must_use]
pub fn broken(metadata: &Metadata) -> Vec<String> {
    let packages = &metadata.packages;
    let mut broken: Vec<String> = packages.iter().flat_map(foreign).collect();
    let folders: Vec<&Path> =
        packages.iter().filter(|package| package.is_ours()).map(Package::folder).collect();
    for package in packages.iter().filter(|package| package.is_ours()) {
        let sources = sources::read(package.folder(), &folders);
        broken.extend(unused(metadata, package, &sources));
        broken.extend(twice(package));
    }
    broken
}

/// Licence and source of somebody else's crate.
fn foreign(package: &Package) -> Vec<String> {
    let Some(source) = &package.source else {
        return Vec::new();
    };
    let name = format!("{} {}", package.name, package.version);
    let mut broken = Vec::new();
    if !(source.starts_with("registry+") && source.ends_with("/crates.io-index")) {
        broken.push(format!("{name} comes from {source}, not from crates.io"));
    }
    match &package.license {
        None => broken.push(format!("{name} names no licence")),
        Some(licence) if !is_allowed(licence) => {
            broken.push(format!("{name} has the licence {licence}, which is not among ours"));
        }
        Some(_) => {}
    }
    broken
}

/// Dependencies that the sources do not name.
fn unused(metadata: &Metadata, package: &Package, sources: &str) -> Vec<String> {
    let unused = package
        .dependencies
        .iter()
        .filter(|dependency| !sources::names(sources, &metadata.crate_name(package, dependency)));
    unused.map(|dependency| format!("{} does not use {}", package.name, dependency.name)).collect()
}

/// Dependencies that are declared again for tests, with nothing more.
fn twice(package: &Package) -> Vec<String> {
    let twice = package.dependencies.iter().filter(|dev| {
        let is_same = |other: &Dependency| {
            other.kind.is_none() && other.name == dev.name && other.features == dev.features
        };
        dev.kind.as_deref() == Some("dev") && package.dependencies.iter().any(is_same)
    });
    twice.map(|dependency| format!("{} declares {} twice", package.name, dependency.name)).collect()
}
