//! The program as people and programs meet it: the real binary, real repositories, nothing of the
//! caller's environment.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod apply;
mod apply_asks;
mod apply_refusals;
mod archive;
mod at_terminal;
#[macro_use]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod bases;
mod bytes;
mod closed;
mod crash;
mod descriptors;
mod disk;
mod environment;
mod from_bundle;
mod gate_canary;
mod gate_words;
mod git_as_at_home;
mod home;
mod host_repositories;
mod hostile_git;
mod inside;
mod isolation;
mod kept_output;
mod large_base;
mod layouts;
mod life;
mod log_end;
mod near_trees;
mod odd_paths;
mod old_host;
mod outcomes;
mod policy_input;
mod programs;
mod refusal;
mod sentences;

mod shapes;
mod skill;
mod slips;
mod spool;
mod stand;
#[path = "../support/mod.rs"]
mod support;
mod trusting;
mod unreachable_objects;
mod verbs_json;
mod wrong_words;
