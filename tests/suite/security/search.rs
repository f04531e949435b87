//! Searches everything that a stack writes for secrets, in the forms in which they travel: plain, base64 at any offset,
//! URL-encoded, hexadecimal. Its own tests show that it finds planted ones.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use libtest_mimic::Trial;

/// Levels of folders that are followed; links are not.
const DEPTH_MAX: usize = 40;
/// The beginning of an SQLite file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// A secret and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub name: String,
    pub value: String,
}

impl Secret {
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// One form of one secret.
struct Needle {
    secret: String,
    form: &'static str,
    text: String,
}

/// The forms of all secrets.
pub struct Search {
    needles: Vec<Needle>,
    /// The forms that contain these bytes among their first ones.
    held: HashMap<[u8; SAMPLE], Vec<usize>>,
    /// The beginnings of these ([`begin`]), which most bytes do not have.
    begun: Vec<bool>,
}

/// Size of a sample of a text, and the distance between two: every form of a secret covers at least one, wherever it
/// is. Half a gigabyte is searched for about a hundred and fifty forms.
const SAMPLE: usize = 8;
const APART: usize = 4;
const BEGINNINGS: usize = 1 << 16;
/// Bytes of the shortest form.
const FORM_BYTES_MIN: usize = SAMPLE + APART - 1;

/// A searched text: its place and its content.
pub struct Searched {
    /// Its name, for the report.
    pub name: String,
    /// Its content; bytes that are not text are replaced, which leaves every form of a secret intact.
    pub text: String,
}

impl Searched {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub place: String,
    pub secret: String,
    pub form: &'static str,
}

impl Search {
    pub fn new(secrets: &[Secret]) -> Self {
        let mut needles = Vec::new();
        for Secret { name, value } in secrets {
            assert!(value.len() >= 12, "{name} is too short to be told from other text");
            let mut add = |form: &'static str, text: String| {
                let known =
                    needles.iter().any(|one: &Needle| one.secret == *name && one.text == text);
                if !known {
                    assert!(text.len() >= FORM_BYTES_MIN, "{name} is too short in {form}");
                    needles.push(Needle { secret: name.clone(), form, text });
                }
            };
            add("as it is", value.clone());
            for offset in 0..3 {
                add("base64", inside(value, offset, &STANDARD_NO_PAD));
                add("base64url", inside(value, offset, &URL_SAFE_NO_PAD));
            }
            let encoded = percent(value);
            add("URL-encoded", encoded.to_lowercase());
            add("URL-encoded", encoded);
            add("hexadecimal", hex::encode(value));
            add("hexadecimal", hex::encode_upper(value));
            add("JSON-escaped", value.replace('/', "\\/"));
        }
        let mut held: HashMap<[u8; SAMPLE], Vec<usize>> = HashMap::new();
        let mut begun = vec![false; BEGINNINGS];
        for (at, needle) in needles.iter().enumerate() {
            for sample in needle.text.as_bytes().windows(SAMPLE).take(APART) {
                held.entry(array(sample)).or_default().push(at);
                begun[begin(sample)] = true;
            }
        }
        Self { needles, held, begun }
    }

    /// The number of forms.
    pub fn len(&self) -> usize {
        self.needles.len()
    }

    /// The needles with a part at one of the sampled places.
    fn maybe(&self, text: &str) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        let (bytes, mut at) = (text.as_bytes(), 0);
        // A plain loop, because this program is not optimised.
        while at + SAMPLE <= bytes.len() {
            if self.begun[begin(&bytes[at..at + SAMPLE])]
                && let Some(held) = self.held.get(&bytes[at..at + SAMPLE])
            {
                all.extend(held);
            }
            at += APART;
        }
        all
    }

    /// The secrets found in a place.
    pub fn find(&self, place: &Searched) -> Vec<Found> {
        let found = self.maybe(&place.text).into_iter().map(|at| &self.needles[at]);
        found
            .filter(|needle| place.text.contains(&needle.text))
            .map(|needle| Found {
                place: place.name.clone(),
                secret: needle.secret.clone(),
                form: needle.form,
            })
            .collect()
    }
}

/// The first bytes of a sample, as a number below [`BEGINNINGS`].
fn begin(sample: &[u8]) -> usize {
    let first = u32::from_le_bytes([sample[0], sample[1], sample[2], sample[3]]);
    (first.wrapping_mul(0x9E37_79B1) >> 16) as usize
}

fn array(sample: &[u8]) -> [u8; SAMPLE] {
    sample.try_into().expect("a sample has its length")
}

/// The part of a secret's base64 that does not depend on its surroundings, if this many bytes of a group of three
/// precede it.
fn inside(value: &str, offset: usize, engine: &impl base64::Engine) -> String {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value.as_bytes());
    let whole = bytes.len() / 3 * 3;
    let text = engine.encode(&bytes[..whole]);
    // The first group also holds bits of the bytes before.
    text[if offset == 0 { 0 } else { 4 }..].to_owned()
}

fn percent(value: &str) -> String {
    value.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// Every file below a folder, with its bytes.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut open) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = open.pop() {
        assert!(depth < DEPTH_MAX, "{} lies too deep", folder.display());
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push((entry.path(), depth + 1)),
                // A file that is gone already held nothing for long.
                Ok(kind) if kind.is_file() => {
                    found.extend(std::fs::read(entry.path()).map(|bytes| (entry.path(), bytes)));
                }
                _ => {}
            }
        }
    }
    found
}

/// The searched texts of a file: its bytes and its path, and a database's tables, whose pages could cut a secret in
/// two.
pub fn of_file(root: &Path, path: &Path, bytes: &[u8]) -> Vec<Searched> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut places = Vec::new();
    if bytes.starts_with(SQLITE) {
        places.extend(tables(path, &name));
    }
    let text = format!("{name}\n{}", String::from_utf8_lossy(bytes));
    places.push(Searched::new(name, text));
    places
}

fn tables(path: &Path, name: &str) -> Vec<Searched> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let book = rusqlite::Connection::open_with_flags(path, flags).unwrap();
    let mut names = book.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().map(|name| name.unwrap()).collect();
    let mut places = Vec::new();
    for table in names {
        // A virtual table of an unknown module is stored in tables that can be read like any other.
        let Ok(mut rows) = book.prepare(&format!("SELECT * FROM \"{table}\"")) else {
            continue;
        };
        let columns = rows.column_count();
        let mut text = String::new();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                use rusqlite::types::ValueRef;
                match row.get_ref(column).unwrap() {
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                        text.push_str(&String::from_utf8_lossy(bytes));
                    }
                    _ => {}
                }
                text.push('\n');
            }
        }
        places.push(Searched::new(format!("{name}: table {table}"), text));
    }
    places
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("security::search::every_secret_form_is_found", || {
            forms();
            Ok(())
        }),
        Trial::test("security::search::planted_secrets_are_found_on_disk", || {
            planted();
            Ok(())
        }),
    ]
}

fn forms() {
    let secret = "canary/of+the=test?no&other";
    let search = Search::new(&[Secret::new("it", secret)]);
    let found = |text: String| !search.find(&Searched::new("here", text)).is_empty();
    for around in ["", "x", "xy", "xyz", "opencode:", "Bearer "] {
        let text = format!("{around}{secret}{around}");
        assert!(found(text.clone()), "as it is behind {around:?}");
        assert!(found(STANDARD_NO_PAD.encode(&text)), "base64 behind {around:?}");
        assert!(found(URL_SAFE_NO_PAD.encode(&text)), "base64url behind {around:?}");
        assert!(
            found(hex::encode(&text)) && found(hex::encode_upper(&text)),
            "hexadecimal behind {around:?}"
        );
    }
    let encoded = form_urlencoded::byte_serialize(secret.as_bytes()).collect::<String>();
    assert!(found(format!("a=1&b={encoded}")), "URL-encoded");
    assert!(found(encoded.to_lowercase()), "URL-encoded in small letters");
    assert!(found(secret.replace('/', "\\/")), "escaped");
    assert!(
        !found("canary/of+the=test".to_owned()) && !found(String::new()),
        "found where it is not"
    );
}

fn planted() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "canary-of-the-planting-test";
    let search = Search::new(&[Secret::new("it", secret)]);
    let looked = || {
        let all = files(folder.path()).into_iter();
        let all = all.flat_map(|(path, bytes)| of_file(folder.path(), &path, &bytes));
        let mut names: Vec<String> =
            all.flat_map(|place| search.find(&place)).map(|found| found.place).collect();
        names.sort();
        names.dedup();
        names
    };
    let deep = folder.path().join("a/b/.c");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("binary"), [&[0, 255, 254][..], secret.as_bytes(), &[200]].concat())
        .unwrap();
    std::fs::write(folder.path().join("clean"), "nothing").unwrap();
    assert_eq!(looked(), ["a/b/.c/binary"]);
    std::fs::write(folder.path().join(secret), "").unwrap();
    let book = rusqlite::Connection::open(folder.path().join("book")).unwrap();
    book.execute_batch("CREATE TABLE t (a TEXT, b BLOB)").unwrap();
    // Longer than a page: the file cuts it.
    let long = format!("{}{secret}", "x".repeat(4_096 * 3 - 500));
    book.execute("INSERT INTO t VALUES (?1, ?2)", ("x", long.into_bytes())).unwrap();
    drop(book);
    let names = looked();
    assert!(names.contains(&"book: table t".to_owned()), "{names:?}");
    assert!(names.contains(&secret.to_owned()), "{names:?}");
}
