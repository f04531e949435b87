//! The laptop stack.

fn main() {}
