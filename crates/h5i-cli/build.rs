//! Links the unwinder into the program instead of loading it: the shared one asks the processor
//! what it can do before `main`, and under a hypervisor each question costs tens of microseconds.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script hears from cargo by its environment, and asks the linker where it looks"
)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if (target("OS"), target("ENV")) != ("linux".to_owned(), "gnu".to_owned()) {
        return;
    }
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let archive = "libgcc_eh.a";
    // A compiler that has no such archive prints the bare name, and then the shared one is used.
    let found = Command::new(linker).arg(format!("-print-file-name={archive}")).output();
    if found.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).trim().contains('/')) {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
        // Asked for first, so that the archive is taken before the shared library is seen.
        println!("cargo::rustc-link-arg-bins=-Wl,-u,_Unwind_Resume");
    }
}
