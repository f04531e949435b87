//! Selects OpenCode's package for this machine.

use super::error::OpenCodeInstallError;

/// This machine's package name, in OpenCode's naming of platforms.
pub(super) fn platform() -> Result<String, OpenCodeInstallError> {
    let unknown = || {
        OpenCodeInstallError::Platform(format!(
            "{} on {}",
            std::env::consts::OS,
            std::env::consts::ARCH
        ))
    };
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        _ => return Err(unknown()),
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => return Err(unknown()),
    };
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let musl = std::fs::read_dir("/lib").is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("ld-musl-"))
    });
    Ok(name(system, processor, &flags, musl))
}

/// A processor whose flags lack AVX2 needs the baseline build.
fn name(system: &str, processor: &str, flags: &str, musl: bool) -> String {
    let old = processor == "x64"
        && !flags.is_empty()
        && !flags.split_whitespace().any(|flag| flag == "avx2");
    let baseline = if old { "-baseline" } else { "" };
    let libc = if musl { "-musl" } else { "" };
    format!("{system}-{processor}{baseline}{libc}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_fits_the_processor() {
        assert_eq!(name("linux", "x64", "flags : sse avx2 bmi", false), "linux-x64");
        assert_eq!(name("linux", "x64", "flags : sse avx bmi", false), "linux-x64-baseline");
        assert_eq!(name("linux", "arm64", "Features : fp", true), "linux-arm64-musl");
        assert_eq!(name("darwin", "x64", "", false), "darwin-x64");
    }
}
