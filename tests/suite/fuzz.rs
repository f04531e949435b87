//! Every reader of foreign bytes keeps its property for its corpus and some thousands of mutations.
//! `BOBBIN_FUZZ_SEED=n` mutates with another seed than CI's; a failure prints how to repeat it and leaves the input
//! under `target/fuzz/found/`. `tests/fuzz/explore` searches further, with libFuzzer.
//!
//! `BOBBIN_FUZZ_SEED=n` mutates by other dice than CI's; a failure prints what it takes to see it again, and leaves
//! the input under `target/fuzz/found/`. `tests/fuzz/explore` looks further than this, with libFuzzer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bobbin_tests::binaries::workspace;
use bobbin_tests::fuzz::dice::Dice;
use bobbin_tests::fuzz::{TARGETS, Target, mutate};
use libtest_mimic::{Failed, Trial};

use crate::run::beside;

const SEED: u64 = 1;
/// Mutations of a target's corpus, after every change.
const INPUTS: u64 = 300;
/// The same in `just nightly`.
const INPUTS_AT_LENGTH: u64 = 3_000;
/// All of them together: recorded streams are long, and each is read several times.
const INPUT_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Fewer would prove little; a corpus with too long files has to be shortened.
const INPUTS_MIN: u64 = 300;
const MUTATION_BYTES_MAX: usize = 64 * 1024;
/// The whole committed corpus.
const CORPUS_BYTES_MAX: u64 = 300 * 1024;

pub fn trials() -> Vec<Trial> {
    let complete = beside("fuzz::fuzz_targets_have_programs_and_corpora", complete);
    each("", INPUTS).chain([complete]).collect()
}

/// The same with ten times as many mutations.
pub fn at_length() -> Vec<Trial> {
    each("_at_length", INPUTS_AT_LENGTH).collect()
}

fn each(how: &'static str, inputs: u64) -> impl Iterator<Item = Trial> {
    TARGETS.iter().map(move |target| {
        beside(format!("fuzz::{}{how}", target.name), move || replayed(target, inputs))
    })
}

fn replayed(target: &'static Target, wanted: u64) -> Result<(), Failed> {
    let seeds = target.seeds(&workspace());
    for seed in &seeds {
        given(target, &seed.bytes, &seed.name, SEED)?;
    }
    let number = std::env::var("BOBBIN_FUZZ_SEED")
        .ok()
        .map(|text| text.parse())
        .transpose()
        .map_err(|e| format!("BOBBIN_FUZZ_SEED is not a number: {e}"))?
        .unwrap_or(SEED);
    let mut dice = Dice::new(number);
    let (mut inputs, mut bytes) = (0, 0);
    while inputs < wanted && bytes < INPUT_BYTES_MAX {
        let seed = &seeds[dice.place(seeds.len())];
        let other = &seeds[dice.place(seeds.len())];
        let input = mutate(&seed.bytes, &other.bytes, MUTATION_BYTES_MAX, &mut dice);
        let name = format!("mutation {inputs} of {} by dice {number}", seed.name);
        given(target, &input, &name, number)?;
        inputs += 1;
        bytes += input.len();
    }
    if inputs < INPUTS_MIN {
        return Err(
            format!("only {inputs} mutations; the corpus has files that are too long").into()
        );
    }
    Ok(())
}

fn given(target: &Target, input: &[u8], name: &str, number: u64) -> Result<(), Failed> {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| target.check(input))) else {
        return Ok(());
    };
    let why = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words");
    let folder = workspace().join("target/fuzz/found").join(target.name);
    let digest = bobbin_core::base::ids::digest(&[&hex::encode(input)]);
    let path = folder.join(&digest[..12]);
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    let kept = match kept {
        Ok(()) => format!("the input is in {}", path.display()),
        Err(e) => format!("the input could not be kept: {e}"),
    };
    Err(format!(
        "{} breaks its property ({}): {name}\n{why}\n{kept}; BOBBIN_FUZZ_SEED={number} gives it again",
        target.name, target.property
    )
    .into())
}

/// libFuzzer's programs are built only by hand, so only this notices a target without one.
fn complete() -> Result<(), Failed> {
    let fuzz = workspace().join("tests/fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml"))?;
    let mut names = Vec::new();
    let mut corpus_bytes = 0;
    for target in TARGETS {
        names.push(target.name.to_owned());
        let source = std::fs::read_to_string(fuzz.join(format!("targets/{}.rs", target.name)))?;
        if !source.contains("include!(\"../explore.rs\")") {
            return Err(format!("targets/{}.rs explores nothing", target.name).into());
        }
        corpus_bytes += folder_bytes(&fuzz.join("corpus").join(target.name))?;
    }
    let programs: Vec<String> = manifest
        .split("[[bin]]\nname = \"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"').map(|(name, _)| name.to_owned()))
        .collect();
    if programs != names {
        return Err(format!("programs {programs:?} for {names:?}").into());
    }
    if corpus_bytes > CORPUS_BYTES_MAX {
        return Err(
            format!("the corpus has {corpus_bytes} bytes; {CORPUS_BYTES_MAX} may be").into()
        );
    }
    Ok(())
}

fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
