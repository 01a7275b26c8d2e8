//! h5i
fn main() {}
