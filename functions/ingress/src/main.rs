//! ingress.

fn main() {}
