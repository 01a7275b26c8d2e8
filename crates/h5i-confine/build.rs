//! Compiles the stage with the compiler that builds the crate and leaves it in `OUT_DIR`.
#![allow(clippy::disallowed_methods, reason = "a build script is told everything by environment")]
#![allow(clippy::print_stdout, reason = "cargo reads a build script's standard output")]

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=stage");
    println!("cargo::rerun-if-changed=src/wire.rs");
    let var = |name: &str| env::var(name).map_err(|e| format!("{name}: {e}"));
    if var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Err("h5i-confine builds for Linux only".to_owned());
    }
    let arch = var("CARGO_CFG_TARGET_ARCH")?;
    if !matches!(arch.as_str(), "x86_64" | "aarch64") {
        return Err(format!("h5i-confine builds for x86_64 and aarch64, not for {arch}"));
    }
    let out = PathBuf::from(var("OUT_DIR")?).join("h5i-stage");
    let mut rustc = Command::new(var("RUSTC")?);
    rustc
        .args(["--edition", "2024", "--crate-name", "h5i_stage", "--crate-type", "bin"])
        .args(["--target", &var("TARGET")?, "-o"])
        .arg(&out)
        .args(["-C", "opt-level=s", "-C", "panic=abort", "-C", "debuginfo=0", "-C", "lto=fat"])
        .args(["-C", "relocation-model=static", "-C", "target-feature=+crt-static"])
        .args(["-C", "strip=symbols", "-C", "default-linker-libraries=no"])
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib"])
        .args(["-C", "link-arg=-static", "-C", "link-arg=-Wl,--build-id=none"])
        .args(["-C", "link-arg=-Wl,-z,noexecstack"])
        .arg("stage/main.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let status = rustc.status().map_err(|e| format!("could not start rustc for the stage: {e}"))?;
    if !status.success() {
        return Err(format!("rustc could not compile the stage: {status}"));
    }
    Ok(())
}
