#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! A [`Plan`] is made from a policy, a [`Layout`] and the host's facts; it is the list of [`Step`]s
//! that will be taken, and refuses what can't be enforced. [`Plan::start`] takes them and yields a
//! [`Session`]; [`Session::command`] runs programs in it, with `std::process::Command`'s habits.
//!
//! Nothing of the calling program runs in the box: a small static program, the *stage*, is executed
//! from a sealed memfd and makes the system calls that the plan lists. No lock, allocation or
//! secret of the caller is ever inside.
#![cfg(target_os = "linux")]

mod budgets;
mod census;
mod cgroup;
mod child;
mod command;
mod compile;
mod control;
mod disk_count;
mod disk_meter;
mod elsewhere;
mod enforcement;
mod error;
mod event;
mod exec_record;
mod free_floor;
mod host;
mod id_map;
mod landlock;
mod launched;
mod layout;
mod list;
mod memory_meter;
mod notices;
mod outcome;
mod overlay_trial;
mod own_text;
mod path_set;
mod plan;
mod prepared;
mod probe;
mod processes;
mod pump;
mod refusals;
mod root;
mod run;
mod seccomp;
mod session;
mod stdio;
mod step;
mod sys;
mod system;
mod system_v;
mod tap;
mod terminal_modes;
mod trees;
mod unnamed;
mod watch;
mod wire;

pub use command::{Command, Output, Stdio, TerminalSize};
pub use elsewhere::{Connection, KeptHere, RunElsewhere, SessionElsewhere, StartedElsewhere};
pub use enforcement::{Enforcement, Mechanism, State};
pub use error::{PlanError, SpawnError, StartError};
pub use event::{
    Arguments, Event, EventSink, Exec, ExecAttempt, NoSink, ProcessEnd, ProcessEnded, ProcessId,
    RefusedCall, Seen, SinkClosed, Spent,
};
pub use host::{HostFacts, UserNamespaces};
pub use launched::{Ahead, Launched};
pub use layout::{
    Access, BOX_ID, HOME, Layout, OVERLAY_WORK, Placement, SPOOL, Source, UPPER, WORKSPACE,
};
pub use outcome::{Limit, Outcome, Stop, Usage};
pub use overlay_trial::try_overlay;
pub use own_text::give_back_text;
pub use plan::{Plan, SocketSlot};
pub use prepared::is_half_made_root;
pub use probe::{Probe, ProbeError, probe};
pub use run::{Run, RunHandle};
pub use session::{InUse, KnownHolders, LiveProcess, Session, SessionHandle, SocketHolder};
pub use step::{BindKind, FilterProgram, LandlockRules, NetworkNamespace, ScratchBound, Step};
pub use system::system_grants;
pub use tap::{OutputTap, TappedStream};
pub use terminal_modes::TerminalModes;
