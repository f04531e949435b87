//! Objects and packs that somebody made on purpose.

use std::io::Write as _;
use std::slice::from_ref;

use bobbin_forge::git::{
    EntryMode, ObjectId, ObjectKind, Pack, PackBounds, PackError, read_commit, read_tree,
};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 3;

/// An object as a pack has it, with the size that it claims.
fn object(kind: u8, claimed: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut left = claimed >> 4;
    let first = kind << 4 | (claimed & 15) as u8;
    bytes.push(if left > 0 { first | 128 } else { first });
    while left > 0 {
        let byte = (left & 127) as u8;
        left >>= 7;
        bytes.push(if left > 0 { byte | 128 } else { byte });
    }
    let mut packing = ZlibEncoder::new(&mut bytes, Compression::fast());
    packing.write_all(content).unwrap();
    packing.finish().unwrap();
    bytes
}

fn whole(kind: u8, content: &[u8]) -> Vec<u8> {
    object(kind, content.len() as u64, content)
}

/// A pack that claims this many objects, with a right checksum.
fn pack(count: u32, objects: &[Vec<u8>]) -> Vec<u8> {
    let head = [&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()].concat();
    sealed([head, objects.concat()].concat())
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    bytes.extend_from_slice(checksum.as_ref());
    bytes
}

fn refused(bytes: Vec<u8>) -> PackError {
    Pack::read(bytes, &PackBounds::PUSH).expect_err("a hostile pack")
}

fn entry(mode: &str, name: &[u8]) -> Vec<u8> {
    [mode.as_bytes(), b" ", name, b"\0", &[7; 20]].concat()
}

fn why(tree: &[u8]) -> String {
    read_tree(tree).map_or_else(|error| error.to_string(), |_| "fine".to_owned())
}

#[test]
fn dangerous_names_are_refused() {
    let named = |name: &str| why(&entry("100644", name.as_bytes()));
    for name in [
        ".git",
        ".GIT",
        ".Git",
        "git~1",
        "GIT~1",
        ".git ",
        ".git.",
        ".git...",
        ".git::$INDEX_ALLOCATION",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".git\\config",
        "a\\.git",
        "x\\git~1\\y",
    ] {
        assert_eq!(named(name), "a folder has an entry named .git", "{name:?}");
    }
    for name in ["..", "."] {
        assert_eq!(named(name), "a folder has an entry that leads out of it");
    }
    for name in ["", "a/b", "/etc", "../x"] {
        assert_eq!(named(name), "a folder has an entry with an impossible name", "{name:?}");
    }
    for name in [
        ".gitignore",
        ".github",
        ".gitmodules",
        "git",
        "...",
        "git~2",
        "a.git",
        "-rf",
        "\u{202e}x",
        "a\nb",
    ] {
        assert_eq!(named(name), "fine", "{name:?}");
    }
    assert_eq!(why(&entry("100644", b"\xff\xfe")), "fine", "names need not be UTF-8");
}

#[test]
fn odd_folders_are_refused() {
    let tree = |entries: &[(&str, &str)]| {
        let each: Vec<Vec<u8>> =
            entries.iter().map(|(mode, name)| entry(mode, name.as_bytes())).collect();
        why(&each.concat())
    };
    assert_eq!(tree(&[]), "fine");
    assert_eq!(
        tree(&[("100644", "a"), ("100755", "b"), ("120000", "c"), ("160000", "d"), ("40000", "e")]),
        "fine"
    );
    // A folder's name counts as if it ended in a slash.
    assert_eq!(tree(&[("100644", "a.c"), ("40000", "a")]), "fine");
    assert_eq!(
        tree(&[("40000", "a"), ("100644", "a.c")]),
        "a folder is not sorted, or has a name twice"
    );
    assert_eq!(
        tree(&[("100644", "b"), ("100644", "a")]),
        "a folder is not sorted, or has a name twice"
    );
    assert_eq!(
        tree(&[("100644", "a"), ("100644", "a")]),
        "a folder is not sorted, or has a name twice"
    );
    assert_eq!(
        tree(&[("100644", "a"), ("100644", "a.c"), ("40000", "a")]),
        "a folder has a name twice"
    );
    for mode in ["040000", "100000", "0", "", "777", "1006440", "-100644", "140000"] {
        assert_eq!(tree(&[(mode, "a")]), "a folder has an entry of an unknown kind", "{mode}");
    }
    let nothing = [&b"100644 a\0"[..], &[0; 20]].concat();
    assert_eq!(why(&nothing), "a folder has an entry without content");
    let good = entry("100644", b"a");
    for end in 1..good.len() {
        assert_eq!(why(&good[..end]), "a folder is cut off");
    }
}

#[test]
fn odd_commits_are_refused() {
    const ID: &str = "00000000000000000000000000000000000000aa";
    let who = "A <a@b> 1 +0000";
    let good = format!("tree {ID}\nparent {ID}\nauthor {who}\ncommitter {who}\n\nhello");
    assert_eq!(read_commit(good.as_bytes()).unwrap().message, "hello");
    let bare = format!("tree {ID}\nauthor {who}\ncommitter {who}\n");
    assert_eq!(read_commit(bare.as_bytes()).unwrap().message, "");
    let odd = [
        (String::new(), "a commit does not begin with its tree"),
        (good.replacen("tree ", "Tree ", 1), "a commit does not begin with its tree"),
        (good.replacen(ID, &ID.to_uppercase(), 1), "a commit does not begin with its tree"),
        (good.replacen("parent 0", "parent x", 1), "a commit has an unreadable parent"),
        (good.replacen("author", "parent", 1), "a commit has an unreadable parent"),
        (good.replacen("author A", "author\0A", 1), "a commit has a zero byte in its headers"),
        (good.replacen(" 1 +0000", " +0000", 1), "a commit has no readable author"),
        (good.replacen(" 1 +0000", " -1 +0000", 1), "a commit has no readable author"),
        (
            good.replacen(" 1 +0000", " 99999999999999999999 +0000", 1),
            "a commit has no readable author",
        ),
        (good.replacen("+0000", "UTC", 1), "a commit has no readable author"),
        (good.replacen("<a@b>", "", 1), "a commit has no readable author"),
        (good.replacen("committer", "commiter", 1), "a commit has no readable committer"),
        (good.replacen("\n\n", &format!("\ntree {ID}\n\n"), 1), "a commit has a header twice"),
        (good.replacen("\n\n", &format!("\nauthor {who}\n\n"), 1), "a commit has a header twice"),
        (good.replacen("\n\n", &format!("\nparent {ID}\n\n"), 1), "a commit has a header twice"),
        (
            good.replacen(&format!("parent {ID}\n"), &format!("parent {ID}\n").repeat(65), 1),
            "a commit has more than 64 parents",
        ),
    ];
    for (commit, why) in odd {
        let error = read_commit(commit.as_bytes()).expect_err(&commit);
        assert_eq!(error.to_string(), why, "{commit}");
    }
}

#[test]
fn hostile_packs_are_refused() {
    let blob = whole(BLOB, b"hello");
    assert!(Pack::read(pack(1, from_ref(&blob)), &PackBounds::PUSH).is_ok());
    assert!(Pack::read(pack(0, &[]), &PackBounds::PUSH).is_ok());
    assert_eq!(refused(Vec::new()), PackError::NotAPack);
    assert_eq!(refused(b"PACK\0\0\0\x03\0\0\0\0".to_vec()), PackError::NotAPack);
    assert_eq!(refused(b"PACK\0\0\0\x02\0\0\0\0".to_vec()), PackError::Damaged);
    assert_eq!(refused(pack(2, from_ref(&blob))), PackError::Damaged);
    assert_eq!(refused(pack(1, &[blob.clone(), blob.clone()])), PackError::Damaged);
    assert_eq!(refused(pack(0, from_ref(&blob))), PackError::Damaged);
    let id = ObjectId::of(ObjectKind::Blob, b"hello");
    assert_eq!(refused(pack(2, &[blob.clone(), blob.clone()])), PackError::Twice(id));
    let most = PackError::TooMany { objects_max: PackBounds::PUSH.objects };
    assert_eq!(refused(pack(u32::MAX, &[blob])), most);
    // A size of more bits than a number has.
    let endless = [vec![BLOB << 4 | 128], vec![255; 20]].concat();
    assert_eq!(refused(pack(1, &[endless])), PackError::Damaged);
    let reserved = whole(5, b"x");
    assert_eq!(refused(pack(1, &[reserved])), PackError::UnknownKind);
    let tree = entry("100644", b"..");
    let id = ObjectId::of(ObjectKind::Tree, &tree);
    let error = refused(pack(1, &[whole(TREE, &tree)]));
    assert_eq!(error.to_string(), format!("{id}: a folder has an entry that leads out of it"));
    let error = refused(pack(1, &[whole(COMMIT, b"tree")]));
    assert!(matches!(error, PackError::Corrupt { .. }), "{error:?}");
}

#[test]
fn bombs_are_refused() {
    const MIB: usize = 1024 * 1024;
    let nothing = vec![0; 4 * MIB];
    let bounds = PackBounds {
        read: MIB as u64,
        blob: 4 * MIB as u64,
        inflated: 10 * MIB as u64,
        ..PackBounds::PUSH
    };
    let refused = |objects: &[Vec<u8>]| {
        let bytes = pack(objects.len() as u32, objects);
        assert!(bytes.len() < MIB / 10, "{} bytes", bytes.len());
        Pack::read(bytes, &bounds).unwrap_err()
    };
    // It has more than it claims, or less.
    assert_eq!(refused(&[object(BLOB, 10, &nothing)]), PackError::Damaged);
    assert_eq!(refused(&[object(BLOB, 10, b"hello")]), PackError::Damaged);
    // It claims what it has.
    assert_eq!(refused(&[whole(TREE, &nothing)]), PackError::Inflates { bytes_max: bounds.read });
    let huge = object(BLOB, bounds.blob + 1, b"");
    assert_eq!(refused(&[huge]), PackError::Inflates { bytes_max: bounds.blob });
    let many: Vec<Vec<u8>> = (0..3).map(|less| whole(BLOB, &nothing[less..])).collect();
    assert_eq!(refused(&many), PackError::Inflates { bytes_max: bounds.inflated });
}

/// An honest small pack: a commit, its folder, and two files.
fn honest() -> Vec<u8> {
    let blobs = [&b"hello"[..], b"a longer text that is worth packing, packing, packing"];
    let mut tree = Vec::new();
    for (name, blob) in ["a.txt", "b.txt"].iter().zip(blobs) {
        let id = ObjectId::of(ObjectKind::Blob, blob);
        tree.extend_from_slice(format!("100644 {name}\0").as_bytes());
        tree.extend(
            (0..20).map(|at| u8::from_str_radix(&id.to_string()[2 * at..2 * at + 2], 16).unwrap()),
        );
    }
    let root = ObjectId::of(ObjectKind::Tree, &tree);
    let commit = format!("tree {root}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nm\n");
    let objects = [
        whole(COMMIT, commit.as_bytes()),
        whole(TREE, &tree),
        whole(BLOB, blobs[0]),
        whole(BLOB, blobs[1]),
    ];
    pack(4, &objects)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_are_seen(at in 0_usize..10_000, bit in 0..8_u8, seal in any::<bool>()) {
        let mut bytes = honest();
        let ids: Vec<ObjectId> =
            Pack::read(bytes.clone(), &PackBounds::PUSH).unwrap().objects().map(|(id, _)| id).collect();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let body = bytes.len() - 20;
        if seal && at < body {
            bytes.truncate(body);
            bytes = sealed(bytes);
        }
        let Ok(read) = Pack::read(bytes, &PackBounds::PUSH) else { return Ok(()) };
        prop_assert!(seal && at < body, "the checksum sees every other flip");
        let mut same = 0;
        for (id, kind) in read.objects() {
            let is_read = match kind {
                ObjectKind::Commit => read.commit(&id).is_some(),
                ObjectKind::Tree => read.tree(&id).is_some(),
                ObjectKind::Blob => read.blob_bytes(&id).is_some(),
            };
            prop_assert!(is_read, "{id} is read again");
            same += usize::from(ids.contains(&id));
        }
        prop_assert!(same >= 3, "a flip touches one object");
    }

    #[test]
    fn any_pack_ends_within_bounds(objects in prop::collection::vec((0..8_u8, 0..300_u64, prop::collection::vec(any::<u8>(), 0..200)), 0..6), honest_size in any::<bool>()) {
        let bounds = PackBounds { bytes: 2_000, objects: 4, inflated: 500, read: 150, blob: 180 };
        let packed: Vec<Vec<u8>> = objects
            .iter()
            .map(|(kind, claimed, content)| object(*kind, if honest_size { content.len() as u64 } else { *claimed }, content))
            .collect();
        let bytes = pack(packed.len() as u32, &packed);
        if let Ok(read) = Pack::read(bytes, &bounds) {
            prop_assert!(objects.len() <= 4);
            let sizes = objects.iter().map(|(_, _, content)| content.len());
            prop_assert!(sizes.clone().sum::<usize>() <= 500 && sizes.max().unwrap_or(0) <= 180);
            for (id, kind) in read.objects() {
                let found = objects.iter().any(|(_, _, content)| ObjectId::of(kind, content) == id);
                prop_assert!(found, "every id is of a content that was packed");
            }
        }
    }

    #[test]
    fn any_bytes_are_a_pack_or_none(bytes in prop::collection::vec(any::<u8>(), 0..400), seal in any::<bool>()) {
        let bytes = if seal { sealed([b"PACK\0\0\0\x02\0\0\0\x01".to_vec(), bytes].concat()) } else { bytes };
        if let Ok(read) = Pack::read(bytes, &PackBounds::PUSH) {
            prop_assert!(read.objects().count() <= 1);
        }
    }

    #[test]
    fn folder_that_is_read_is_the_folder(entries in prop::collection::vec((prop::sample::select(vec!["100644", "100755", "120000", "40000", "160000", "040000"]), "[a-c.\\-/]{0,3}|\\.git|git~1|\\.\\."), 0..6), cut in 0..200_usize, sorted in any::<bool>()) {
        let mut each: Vec<(String, Vec<u8>)> = entries
            .iter()
            .map(|(mode, name)| {
                let end = if *mode == "40000" { "/" } else { "" };
                (format!("{name}{end}"), entry(mode, name.as_bytes()))
            })
            .collect();
        if sorted {
            each.sort();
        }
        let mut bytes: Vec<u8> = each.into_iter().flat_map(|(_, bytes)| bytes).collect();
        if cut < 20 {
            bytes.truncate(bytes.len().saturating_sub(cut));
        }
        if let Ok(read) = read_tree(&bytes) {
            let again: Vec<u8> = read.iter().flat_map(|one| {
                let mode = match one.mode {
                    EntryMode::File => "100644",
                    EntryMode::Executable => "100755",
                    EntryMode::Symlink => "120000",
                    EntryMode::Folder => "40000",
                    EntryMode::Submodule => "160000",
                };
                entry(mode, &one.name)
            }).collect();
            prop_assert_eq!(again, bytes);
            let mut names: Vec<&[u8]> = read.iter().map(|one| one.name.as_slice()).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), read.len());
            prop_assert!(read.iter().all(|one| !one.name.contains(&b'/') && one.name != b".." && one.name != b".git"));
        }
    }

    #[test]
    fn any_bytes_are_an_object_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_tree(&bytes);
        let _ = read_commit(&bytes);
        let headed = [format!("tree {}\n", "a".repeat(40)).into_bytes(), bytes].concat();
        if let Ok(commit) = read_commit(&headed) {
            prop_assert!(headed.len() > commit.message.len() / 3);
        }
    }
}
