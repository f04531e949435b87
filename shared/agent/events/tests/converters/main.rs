//! Every line of every recording goes in, nothing is dropped, and what comes out is as the snapshots show it.
//!
//! Recordings of OpenCode are the suite's fixtures; those of the other agents lie beside the folder that `BOBBIN_SPECS`
//! names. `BOBBIN_SNAPSHOTS=write` writes the snapshots anew, to be read before they are committed.
#![allow(clippy::unwrap_used, missing_docs)]

mod accounted;
mod conformance;
mod promises;
mod read;
mod shown;
mod snapshots;
mod transcripts;
