// The whole of every program here: the target that is named like the program, and mutations of whole values beside
// libFuzzer's own of bytes. With `BOBBIN_FUZZ_SEEDS_TO` it only writes the target's seeds into that folder.

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static TARGET: LazyLock<&targets::Target> = LazyLock::new(|| {
    targets::Target::named(env!("CARGO_BIN_NAME")).expect("a program is named like its target")
});

fuzz_target!(
    init: {
        if let Some(folder) = std::env::var_os("BOBBIN_FUZZ_SEEDS_TO") {
            write_seeds(folder.as_ref());
            std::process::exit(0);
        }
    },
    |input: &[u8]| TARGET.check(input)
);

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = targets::dice::Dice::new(seed.into());
    if dice.falls(500) {
        return fuzzer_mutate(data, size, max_size);
    }
    let mutated = targets::mutate(&data[..size], &data[..size], max_size, &mut dice);
    data[..mutated.len()].copy_from_slice(&mutated);
    mutated.len()
});

fn write_seeds(folder: &std::path::Path) {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::create_dir_all(folder).expect("a folder for the seeds");
    for (at, seed) in TARGET.seeds(&workspace).iter().enumerate() {
        let path = folder.join(format!("{at:03}-{}", seed.name));
        std::fs::write(path, &seed.bytes).expect("a seed is written");
    }
}
