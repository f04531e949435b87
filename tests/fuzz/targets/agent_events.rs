#![no_main]
include!("../explore.rs");
