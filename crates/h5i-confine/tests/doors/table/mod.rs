//! The doors that one attempt decides.

mod files;
mod kernel;
mod mounts;
mod proc_and_devices;
mod processes;
mod sockets;
mod writing;

use crate::door::Door;
use crate::world::World;

pub(crate) fn all(world: &World) -> Vec<Door> {
    [
        files::doors,
        writing::doors,
        proc_and_devices::doors,
        mounts::doors,
        kernel::doors,
        processes::doors,
        sockets::doors,
    ]
    .into_iter()
    .flat_map(|doors| doors(world))
    .collect()
}
