//! The Dockerfile of the sandbox image: `infra/sandbox/Dockerfile`, with the daemon and the agents that an operator
//! chooses.
//!
//! A provider builds it from the text alone, so the daemon's binary comes from the operator's address and is checked by
//! its hash. The daemon itself knows each agent's package and hash.

use bobbin_app::providers::DOCKERFILE;
use clap::ValueEnum;

/// Where the image's user section begins; system-wide installs go before it.
const BEFORE_THE_USER: &str = "RUN useradd ";
/// Where the daemon installs agents.
const AGENTS_DIR: &str = "/opt/bobbin/agents";
/// Hexadecimal digits of a SHA-512.
const HASH_DIGITS: usize = 128;

/// An agent that the image gets beside OpenCode. Choosing it accepts its licence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImageAgent {
    /// Claude Code (proprietary)
    Claude,
    /// Codex
    Codex,
}

impl ImageAgent {
    /// Its name and licence.
    pub const fn licence(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code (proprietary: Anthropic's commercial terms)",
            Self::Codex => "Codex (Apache-2.0)",
        }
    }

    /// Its id in the daemon.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// The daemon's binary, as the image build fetches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonBinary {
    url: String,
    sha512: String,
}

impl DaemonBinary {
    /// The binary at this address, with this hash.
    ///
    /// # Errors
    /// One of them is invalid.
    pub fn new(url: &str, sha512: &str) -> Result<Self, String> {
        // It goes into shell quotes in a Dockerfile line.
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\'' | '"' | '\\' | '`' | '$');
        if !url.starts_with("https://") || !url.chars().all(plain) {
            return Err(
                "--daemon: an address starts with https:// and has no spaces or quotes.".to_owned()
            );
        }
        if sha512.len() != HASH_DIGITS || !sha512.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(format!(
                "--daemon-sha512: a SHA-512 has {HASH_DIGITS} hexadecimal digits; sha512sum prints it."
            ));
        }
        Ok(Self { url: url.to_owned(), sha512: sha512.to_ascii_lowercase() })
    }
}

/// The Dockerfile.
#[must_use]
pub fn dockerfile(daemon: Option<&DaemonBinary>, agents: &[ImageAgent]) -> String {
    let Some(daemon) = daemon else {
        return DOCKERFILE.to_owned();
    };
    let DaemonBinary { url, sha512 } = daemon;
    let mut steps = format!(
        "# The daemon of the modes compat and native, by its hash.\n\
         RUN set -eu; cd /tmp; \\\n    \
             curl --fail --silent --show-error --location --retry 3 --output bobbin-agentd '{url}'; \\\n    \
             echo '{sha512}  bobbin-agentd' | sha512sum --check --quiet -; \\\n    \
             install -m 0755 bobbin-agentd /usr/local/bin/bobbin-agentd; \\\n    \
             rm bobbin-agentd; \\\n    \
             bobbin-agentd --version\n"
    );
    if !agents.is_empty() {
        let ids: Vec<&str> = agents.iter().map(|agent| agent.id()).collect();
        steps += &format!(
            "# Each by the hash that the daemon knows.\n\
             RUN bobbin-agentd install {} --into {AGENTS_DIR} && rm -rf /root/.npm\n\
             ENV PATH={AGENTS_DIR}/bin:$PATH\n",
            ids.join(" ")
        );
    }
    DOCKERFILE.replacen(BEFORE_THE_USER, &format!("{steps}{BEFORE_THE_USER}"), 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn daemon_and_agents_precede_image_user() {
        let hash = "ab".repeat(64);
        let daemon = DaemonBinary::new("https://example.org/r/bobbin-agentd", &hash).unwrap();
        let text = dockerfile(Some(&daemon), &[ImageAgent::Claude, ImageAgent::Codex]);
        let steps = format!(
            "\
# The daemon of the modes compat and native, by its hash.
RUN set -eu; cd /tmp; \\
    curl --fail --silent --show-error --location --retry 3 --output bobbin-agentd 'https://example.org/r/bobbin-agentd'; \\
    echo '{hash}  bobbin-agentd' | sha512sum --check --quiet -; \\
    install -m 0755 bobbin-agentd /usr/local/bin/bobbin-agentd; \\
    rm bobbin-agentd; \\
    bobbin-agentd --version
# Each by the hash that the daemon knows.
RUN bobbin-agentd install claude codex --into /opt/bobbin/agents && rm -rf /root/.npm
ENV PATH=/opt/bobbin/agents/bin:$PATH
RUN useradd --create-home"
        );
        assert!(text.contains(&steps), "{text}");
        assert_eq!(
            text.replace(steps.trim_end_matches("RUN useradd --create-home"), ""),
            DOCKERFILE
        );
        assert!(!dockerfile(Some(&daemon), &[]).contains("bobbin-agentd install"));
        assert_eq!(dockerfile(None, &[]), DOCKERFILE);
    }

    #[test]
    fn unsafe_daemon_download_is_refused() {
        let hash = "ab".repeat(64);
        for (url, hash, why) in [
            ("http://example.org/x", hash.as_str(), "starts with https://"),
            ("https://example.org/';id;'", &hash, "no spaces or quotes"),
            ("https://example.org/x", "abc", "128 hexadecimal digits"),
        ] {
            let refused = DaemonBinary::new(url, hash).unwrap_err();
            assert!(refused.contains(why), "{url}: {refused}");
        }
    }
}
