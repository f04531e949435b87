//! The output of `cargo metadata`, as far as the rules need it (format version 1).

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// All packages and their resolution.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Those of the workspace and everything below them.
    pub packages: Vec<Package>,
    /// By which names they know each other.
    pub resolve: Resolve,
}

/// A package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its id, which the resolved graph uses.
    pub id: String,
    /// Its name in the registry.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, an SPDX expression.
    pub license: Option<String>,
    /// Its source; `None` in the workspace.
    pub source: Option<String>,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Its declared dependencies.
    pub dependencies: Vec<Dependency>,
}

/// A declared dependency.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// The name that replaces it in the sources.
    pub rename: Option<String>,
    /// `dev`, `build`, or `None`.
    pub kind: Option<String>,
    /// The features that it asks for.
    pub features: Vec<String>,
}

/// The resolved graph.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    name: String,
    pkg: String,
}

impl Package {
    /// Whether it belongs to the workspace.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        self.source.is_none()
    }

    /// The folder of its manifest.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new(""))
    }
}

impl Metadata {
    /// How a dependency is called in the sources of the package: a library may have another name than its package.
    #[must_use]
    pub fn crate_name(&self, package: &Package, dependency: &Dependency) -> String {
        if let Some(name) = &dependency.rename {
            return name.replace('-', "_");
        }
        let of_package = |edge: &&Edge| {
            let is_it = |found: &&Package| found.id == edge.pkg && found.name == dependency.name;
            self.packages.iter().any(|found| is_it(&found))
        };
        let node = self.resolve.nodes.iter().find(|node| node.id == package.id);
        let edge = node.and_then(|node| node.deps.iter().find(of_package));
        // A dependency of another platform, or of a feature that is off, is not resolved.
        edge.map_or_else(|| dependency.name.replace('-', "_"), |edge| edge.name.clone())
    }
}
