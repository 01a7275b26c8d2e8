"""Stands in for package registries. usage: registry.py DIRECTORY NAME=ADDRESS…

Each name is served over TLS from the directory of its name, at an address of its own. Run in a
network namespace of its own, this prints `here`, waits for a line that says there is a cable, and
prints `ready`.
"""
import fcntl, functools, http.server, os, socket, ssl, struct, sys, threading

UP, ADDRESS, MASK = 0x8914, 0x8916, 0x891C


def ask(number, name, value):
    with socket.socket() as asker:
        fcntl.ioctl(asker, number, struct.pack("16s24s", name.encode(), value))


def internet(address):
    return struct.pack("H2x4s", socket.AF_INET, socket.inet_aton(address))


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, directory, *rest):
        self.directory = directory
        super().__init__(*rest)

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = os.path.join(self.directory, self.path.split("?")[0].lstrip("/"))
        if os.path.isdir(path):
            path = os.path.join(path, "index.html")
        for name, status in [(path, 200), (path + ".moved", 302)]:
            if os.path.isfile(name):
                with open(name, "rb") as file:
                    return self.say(status, file.read())
        self.say(404, b"")

    def say(self, status, data):
        self.send_response(status)
        if status == 302:
            self.send_header("location", data.decode())
            data = b""
        html = status == 200 and data.startswith(b"<!DOCTYPE")
        self.send_header("content-type", "text/html" if html else "application/octet-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def give(device, address, mask):
    ask(ADDRESS, device, internet(address))
    ask(MASK, device, internet(mask))
    ask(UP, device.split(":")[0], struct.pack("H", 0x1 | 0x40))


print("here", flush=True)
sys.stdin.readline()
give("cable", "192.168.77.2", "255.255.255.252")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("service.pem", "service.key")
for number, pair in enumerate(sys.argv[2:]):
    name, address = pair.split("=")
    give(f"lo:{number}", address, "255.255.255.255")
    handler = functools.partial(Registry, os.path.join(sys.argv[1], name))
    server = http.server.ThreadingHTTPServer((address, 443), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
