//! Sockets of every kind between programs of the box.

use crate::table::{PYTHON, prints};

#[test]
fn programs_of_a_box_talk_over_every_kind_of_socket() {
    let rows = [
        (
            "import socket\nfor p in ['/tmp/s', '/work/s', '\\0abstract']:\n  \
             s = socket.socket(socket.AF_UNIX); s.bind(p); s.listen()\n  \
             c = socket.socket(socket.AF_UNIX); c.connect(p); a, _ = s.accept()\n  c.send(b'x'); print(a.recv(1))",
            "b'x'\nb'x'\nb'x'",
        ),
        (
            "import socket\nfor f, h in [(socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')]:\n  \
             s = socket.socket(f); s.bind((h, 0)); s.listen()\n  \
             c = socket.create_connection(s.getsockname()[:2]); a, _ = s.accept(); c.send(b'x'); print(a.recv(1))",
            "b'x'\nb'x'",
        ),
        (
            "import socket\nu = socket.socket(type=socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n\
             u.sendto(b'x', u.getsockname()); print(u.recv(1))",
            "b'x'",
        ),
        (
            "import socket, os, array\na, b = socket.socketpair()\nr, w = os.pipe()\n\
             socket.send_fds(a, [b'x'], [w]); _, fds, _, _ = socket.recv_fds(b, 1, 1)\n\
             os.write(fds[0], b'y'); print(os.read(r, 1))",
            "b'y'",
        ),
        ("import socket; print(socket.gethostbyname('localhost'))", "127.0.0.1"),
    ];
    prints("programs_of_a_box_talk_over_every_kind_of_socket", PYTHON, &rows);
}
