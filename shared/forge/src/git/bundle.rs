//! The head of a bundle: what turns a pack into a file that `git clone` and `git fetch` read.

use super::object::ObjectId;
use super::refs::RefName;

/// The head of a bundle (version 2). The pack follows it without anything in between.
///
/// `needed`: commits that the reader has to have. A shallow pack makes no bundle that can be cloned.
#[must_use]
pub fn bundle_header(needed: &[ObjectId], refs: &[(RefName, ObjectId)]) -> Vec<u8> {
    let mut head = "# v2 git bundle\n".to_owned();
    for commit in needed {
        head += &format!("-{commit} \n");
    }
    for (name, id) in refs {
        head += &format!("{id} {name}\n");
    }
    head.push('\n');
    head.into_bytes()
}
