//! One test binary for all promises.
