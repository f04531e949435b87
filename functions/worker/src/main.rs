//! worker.

fn main() {}
