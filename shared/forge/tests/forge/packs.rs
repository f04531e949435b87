//! Packs that real git made.

use std::collections::BTreeMap;

use bobbin_forge::git::{EntryMode, ObjectKind, Pack, PackBounds, PackError};

use crate::git::{ObjectPlace, git, raw};

#[test]
fn pack_of_whole_objects_is_read() {
    let place = ObjectPlace::filled();
    let base = place.at("HEAD");
    place.commit("src/ünïcode.txt", "three\n");
    std::os::unix::fs::symlink("a.txt", place.work.join("src/link")).unwrap();
    place.commit("run.sh", "#!/bin/sh\n");
    git(&place.work, &["update-index", "--chmod=+x", "run.sh"]);
    git(&place.work, &["commit", "--quiet", "--message", "Übung\n\nmore"]);
    let tip = place.at("HEAD");
    let bytes = place.pack(Some(base), tip);
    let pack = Pack::read(bytes.clone(), &PackBounds::PUSH).unwrap();

    let every = ["rev-list", "--objects", "--no-object-names", &format!("{base}..{tip}")];
    let listed = git(&place.work, &every);
    let checked =
        raw(&place.work, &["cat-file", "--batch-check"], format!("{listed}\n").as_bytes());
    let known: BTreeMap<String, String> = String::from_utf8(checked)
        .unwrap()
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(id, rest)| (id.to_owned(), rest.to_owned()))
        .collect();
    let found: BTreeMap<String, String> = pack
        .objects()
        .map(|(id, kind)| {
            let size = git(&place.work, &["cat-file", "-s", &id.to_string()]);
            (id.to_string(), format!("{} {size}", kind.word()))
        })
        .collect();
    assert_eq!(found, known);

    let commit = pack.commit(&tip).unwrap();
    assert_eq!(commit.message, "Übung\n\nmore\n");
    assert_eq!(
        (commit.author.name.as_str(), commit.author.email.as_str()),
        ("Ada", "ada@example.org")
    );
    assert_eq!(commit.parents, [place.at("HEAD^")]);
    let root = pack.tree(&commit.tree).unwrap();
    let shown: Vec<_> = root.iter().map(|one| (one.mode, one.name.as_slice())).collect();
    assert_eq!(shown, [(EntryMode::Executable, &b"run.sh"[..]), (EntryMode::Folder, b"src")]);
    let src = pack.tree(&root[1].id).unwrap();
    let link = src.iter().find(|one| one.mode == EntryMode::Symlink).unwrap();
    assert_eq!((link.name.as_slice(), pack.blob_bytes(&link.id)), (&b"link"[..], Some(5)));
    assert!(src.iter().any(|one| one.name == "ünïcode.txt".as_bytes()));
    assert_eq!(pack.commit(&commit.tree), None, "a folder is no commit");
    assert_eq!(pack.commit(&base), None, "it is not in the pack");
    assert_eq!(pack.into_bytes(), bytes);
}

#[test]
fn deltas_are_refused() {
    let place = ObjectPlace::empty();
    let text = |end: &str| (0..500).map(|line| format!("line {line}\n")).collect::<String>() + end;
    let base = place.commit("a.txt", &text("one"));
    let tip = place.commit("a.txt", &text("two"));
    let pack = |arguments: &[&str], wanted: &str| {
        let all = [&["pack-objects", "--revs", "--stdout", "-q"], arguments].concat();
        raw(&place.work, &all, wanted.as_bytes())
    };
    let both = format!("{tip}\n");
    let since = format!("{tip}\n^{base}\n");
    for bytes in
        [pack(&["--delta-base-offset"], &both), pack(&[], &both), pack(&["--thin"], &since)]
    {
        assert_eq!(Pack::read(bytes, &PackBounds::PUSH).unwrap_err(), PackError::Delta);
    }
    let whole = place.pack(None, tip);
    let objects = Pack::read(whole, &PackBounds::PUSH).unwrap().objects().count();
    assert_eq!(objects, 6);
}

#[test]
fn tags_are_refused() {
    let place = ObjectPlace::filled();
    git(&place.work, &["tag", "--annotate", "v1", "--message", "one"]);
    let bytes = raw(
        &place.work,
        &["pack-objects", "--stdout", "-q"],
        format!("{}\n", place.at("v1")).as_bytes(),
    );
    assert_eq!(Pack::read(bytes, &PackBounds::PUSH).unwrap_err(), PackError::UnknownKind);
}

#[test]
fn bounds_of_packs_hold() {
    let place = ObjectPlace::filled();
    let bytes = place.pack(None, place.at("HEAD"));
    let roomy = PackBounds::PUSH;
    let refused = |bounds: PackBounds| Pack::read(bytes.clone(), &bounds).unwrap_err();
    let small = bytes.len() - 1;
    assert_eq!(
        refused(PackBounds { bytes: small, ..roomy }),
        PackError::TooLarge { bytes_max: small }
    );
    assert_eq!(refused(PackBounds { objects: 7, ..roomy }), PackError::TooMany { objects_max: 7 });
    assert_eq!(
        refused(PackBounds { inflated: 300, ..roomy }),
        PackError::Inflates { bytes_max: 300 }
    );
    assert_eq!(refused(PackBounds { read: 100, ..roomy }), PackError::Inflates { bytes_max: 100 });
    assert_eq!(refused(PackBounds { blob: 3, ..roomy }), PackError::Inflates { bytes_max: 3 });
    let pack = Pack::read(bytes, &PackBounds { objects: 8, blob: 4, ..roomy }).unwrap();
    let blobs = pack.objects().filter(|(_, kind)| *kind == ObjectKind::Blob);
    assert_eq!(blobs.count(), 2);
}

/// GitHub's own signed merges, and what converters and other programs leave in commits.
#[test]
fn signed_merge_is_read() {
    let place = ObjectPlace::filled();
    let tree = git(&place.work, &["rev-parse", "HEAD^{tree}"]);
    let tip = place.at("HEAD");
    let parent = place.at("HEAD^");
    let raw_commit = format!(
        "tree {tree}\nparent {tip}\nparent {parent}\nauthor A <a@b> 1 +0000\ncommitter  <> 2 -1130\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQE=\n -----END PGP SIGNATURE-----\nencoding ISO-8859-1\nHG:extra rebase_source:1\n\nM\n"
    );
    let id = raw(
        &place.work,
        &["hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        raw_commit.as_bytes(),
    );
    let id = String::from_utf8(id).unwrap().trim().parse().unwrap();
    let pack = Pack::read(place.pack(None, id), &PackBounds::PUSH).unwrap();
    let commit = pack.commit(&id).unwrap();
    assert_eq!(commit.parents, [tip, parent]);
    assert_eq!((commit.committer.name.as_str(), commit.committer.at_s), ("", 2));
    assert_eq!(commit.message, "M\n");
}
