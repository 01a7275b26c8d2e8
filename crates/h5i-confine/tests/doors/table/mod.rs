//! The doors that one attempt decides.

mod files;
mod kernel;
mod mounts;
mod proc_and_devices;
mod processes;
mod sockets;
mod writing;

use crate::door::{Door, Twin};
use crate::world::{Variant, World};

pub(crate) fn all(world: &World) -> Vec<Door> {
    // The root's doors once more, where the root was prepared.
    let prepared = [writing::doors, proc_and_devices::doors, mounts::doors, files::of_the_root]
        .into_iter()
        .flat_map(|doors| doors(world))
        .filter(|door| door.variant == Variant::Usual)
        // What succeeds elsewhere has succeeded once.
        .filter(|door| !matches!(door.twin, Twin::In(_) | Twin::LikeOutside(_)))
        .map(|door| door.in_box(Variant::Prepared));
    [
        files::doors,
        files::of_the_root,
        writing::doors,
        proc_and_devices::doors,
        mounts::doors,
        kernel::doors,
        processes::doors,
        sockets::doors,
    ]
    .into_iter()
    .flat_map(|doors| doors(world))
    .chain(prepared)
    .collect()
}
