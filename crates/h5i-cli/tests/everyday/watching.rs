//! Watchers: a change to a file is heard of, also of one that came from the base.

use crate::table::{NODE, PYTHON, prints};

#[test]
fn inotify_tells_of_new_and_changed_files() {
    let watch = "import ctypes, os, subprocess\nl = ctypes.CDLL(None); f = l.inotify_init1(0)\n\
                 assert l.inotify_add_watch(f, b'/work', 0x102) >= 0\n";
    let new = format!("{watch}open('/work/new', 'w'); print(b'new' in os.read(f, 4096))");
    // A file of the base: an overlay copies it up first.
    let changed = format!(
        "{watch}subprocess.run(['sh', '-c', 'echo x >> /work/a.txt']); print(b'a.txt' in os.read(f, 4096))"
    );
    let rows = [(new.as_str(), "True"), (changed.as_str(), "True")];
    prints("inotify_tells_of_new_and_changed_files", PYTHON, &rows);
}

#[test]
fn node_watches_a_tree() {
    let rows = [(
        "const fs = require('fs'); fs.mkdirSync('/tmp/w/x', {recursive: true});\
         const w = fs.watch('/tmp/w', {recursive: true}, (e, n) => { console.log(n); process.exit(0) });\
         setInterval(() => fs.writeFileSync('/tmp/w/x/y', ''), 20)",
        "x/y",
    )];
    prints("node_watches_a_tree", NODE, &rows);
}
