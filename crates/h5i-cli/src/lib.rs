//! What stands behind the `h5i` program: boxes on disk, their workspaces, what is read from the
//! caller's surroundings, and the contract of the command line.
//!
//! - [`store`]: boxes as directories that are whole or absent, their locks, their end.
//! - [`workspace`]: the pinned base, the objects a box receives, and its tree.
//! - [`surroundings`] and [`toolchains`]: the caller's environment and the host's programs.
//! - [`failure`] and [`envelope`]: error kinds, exit codes and the JSON of every verb.
//! - [`args`] and [`command_line`]: the grammar of the command line, and the program on top of it.
#![forbid(unsafe_code)]

mod approvals;
mod approved_start;
mod archive;
pub mod args;
mod box_grants;
mod box_network;
pub mod box_plan;
pub mod caller;
mod canary;
mod changed_paths;
mod changes;
pub mod command_line;
pub mod creation;
pub mod envelope;
pub mod failure;
mod forward;
mod gaps;
pub mod grant_record;
mod groups;
mod hook;
mod inside;
pub mod json_bytes;
mod learn;
mod learn_edit;
mod log_kinds;
mod log_sync;
mod log_tail;
pub mod net_record;
mod net_sources;
mod network_trial;
mod open_files;
mod origin;
mod own_places;
mod own_registry;
mod pager;
mod passing;
mod patch_text;
mod path_error;
mod payload;
mod person;
pub mod policy_source;
mod program_links;
pub mod program_record;
pub mod receipt_log;
mod reviewed_start;
pub mod running;
mod second_look;
mod seeded_home;
pub mod session;
mod shown;
mod skill;
mod spool;
pub mod store;
pub mod surroundings;
pub mod terminal;
mod timestamp;
pub mod toolchains;
mod trust;
pub mod unconfined;
mod verbs;
mod watch_file;
pub mod workspace;
mod written_secrets;

pub use path_error::{Action, PathError};
pub use shown::Shown;
pub use timestamp::{Timestamp, TimestampError};
