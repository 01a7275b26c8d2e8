#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod address;
mod attributes;
mod budget;
mod datagrams;
mod divert;
mod engine;
mod error;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod links;
mod netlink;
mod network;
mod pins;
mod relay;
mod resolver;
mod rules;
mod sockets;
mod sys;
mod table;

pub use address::{BOX_V4, BOX_V6, HOST_V4, RESOLVER};
pub use budget::Budgets;
pub use divert::{Divert, Diverted};
pub use error::{ChangeError, PlanError, StartError};
pub use event::{
    Basis, Event, EventSink, FlowEnded, NoSink, Refusal, RefusedProtocol, SinkClosed, Spent,
    Verdict,
};
pub use network::{Network, SocketRequest, requests};
pub use pins::PinnedAddress;
pub use resolver::{Addresses, HostResolver, Resolve};
pub use sockets::{Sockets, sockets_request};
