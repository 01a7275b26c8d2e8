//! A box that is alive, and the processes that share it.
//!
//! Who takes the box's lock first holds the session and listens on `control.sock` in the box's host
//! directory (`Host`). Who comes later finds the lock taken and joins (`Joined`): it keeps its own
//! terminal, pipes and bytes, and asks the holder to start, signal and record. The lock decides who is
//! who; a socket without a holder is a leftover.

mod control_socket;
mod frame;
mod host;
mod joined;
mod lasting;
mod message;
mod opened;
mod overseer;
mod reactions;
mod refused;
mod roster;
mod seat;
mod service;
mod spent;
mod still;

pub(crate) use host::Host;
pub(crate) use joined::Joined;
pub(crate) use message::{Live, LiveProcess, LiveRefusal, LiveRun};
pub use opened::Opened;
pub(crate) use overseer::{
    Ending, Forwarded, Presence, change_grant, change_network, end, freeze, presence,
};
pub(crate) use reactions::{Reactions, check_export, held, release, say_aside};
pub use refused::Refused;
pub(crate) use roster::Lifetime;
pub(crate) use seat::Seat;
pub use spent::Spent;
pub(crate) use still::{Still, record};
