//! The box's own tree: a pinned base, the objects it receives, its git directory, its files.
//!
//! The host's repository is read at create and never written. What the box receives are objects
//! that are reachable from its base and nothing else, in a bare repository of h5i's own.

mod ancestor;
mod backend;
mod base_objects;
mod base_spec;
mod boundary;
mod checkout;
mod common_dir;
mod extent;
mod files;
mod git_dir;
mod host_git;
mod host_repository;
mod near;
mod nearest;
mod overlay_support;
mod pinned_base;
mod prepare;
mod pristine;
mod staging;
mod standing;
mod tree_check;
mod tree_record;
mod tree_writer;
mod visible_tree;
mod working_tree;

pub use backend::{Backend, LaidOut, Layout, Note};
pub use base_objects::{BaseObjects, Making, ObjectsError, ObjectsRequest};
pub use base_spec::BaseSpec;
pub use checkout::{Checkout, CheckoutError};
pub use common_dir::scope_of;
pub use extent::is_small;
pub use git_dir::{GitDirError, Identity};
pub use host_git::{HostGit, PackError};
pub use host_repository::{DiscoverError, HostRepository};
pub use nearest::nearest;
pub use overlay_support::OverlaySupport;
pub use pinned_base::{BaseKind, PinError, PinnedBase};
pub use prepare::{ObjectMount, ObjectsAt, Owner, Prepared, Workspace, WorkspaceError};
pub use standing::Standing;
pub(crate) use tree_record::TreeRecord;
pub use visible_tree::HiddenPaths;
pub use working_tree::WorkingTreeError;

pub(crate) use tree_writer::write_commit_of;
