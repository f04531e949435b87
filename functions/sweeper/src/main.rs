//! sweeper.

fn main() {}
