//! The scripted model as a program of its own.

fn main() {}
