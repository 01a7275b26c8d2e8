"""Stands in for the services of the agents' makers. usage: service.py LOG TOKENS

Each request is a line in LOG. A model that has no result of a command yet asks for one; then it is
through. A token that TOKENS lists is taken once, and refused from then on.
"""
import fcntl, http.server, json, socket, ssl, struct, sys

LOG = open(sys.argv[1], "a")
TAKEN = {}

with socket.socket() as probe:  # The loopback of a new network namespace is down.
    fcntl.ioctl(probe, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))


class Chunks:
    def __init__(self, out):
        self.out = out

    def event(self, name, data):
        data = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
        self.out.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.out.flush()

    def end(self):
        self.out.write(b"0\r\n\r\n")
        self.out.flush()


COMMAND = "echo from-the-agent > made.txt"


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve({})

    do_HEAD = do_GET

    def do_POST(self):
        length = self.headers.get("content-length")
        if length is not None:
            body = self.rfile.read(int(length))
        else:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        try:
            self.serve(json.loads(body))
        except ValueError:
            self.serve({})

    def say(self, status, value):
        value = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(value)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(value)

    def serve(self, asked):
        shown = self.headers.get("authorization") or self.headers.get("x-api-key") or ""
        path = self.path.split("?")[0]
        if path == "/v1/oauth/token":
            return self.say(200, {
                "token_type": "Bearer", "access_token": "sk-ant-oat01-CANARYrenewed3fL6pW0sT5yC2dRq",
                "refresh_token": "sk-ant-ort01-CANARYnext", "expires_in": 28800,
                "scope": "user:inference"})
        print(self.command, path, shown, file=LOG, flush=True)
        try:
            stale = open(sys.argv[2]).read().split()
        except OSError:
            stale = []
        token = shown.split(" ")[-1]
        if token in stale:
            TAKEN[token] = TAKEN.get(token, 0) + 1
            if TAKEN[token] > 1:
                return self.say(401, {"type": "error", "error": {
                    "type": "authentication_error", "message": "OAuth token has expired."}})
        if path == "/v1/messages":
            return self.messages(asked)
        if path == "/v1/responses":
            return self.model(asked)
        self.say(200 if path.startswith("/v1/") else 404, {"data": [], "input_tokens": 1})

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        return Chunks(self.wfile)

    def messages(self, asked):
        """Anthropic's Messages API."""
        parts = [p for m in asked.get("messages", []) if isinstance(m.get("content"), list)
                 for p in m["content"]]
        done = any(part.get("type") == "tool_result" for part in parts)
        able = any(tool.get("name") == "Bash" for tool in asked.get("tools", []))
        use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        order = {"command": COMMAND, "description": "Make the file"}
        stop = "end_turn" if done or not able else "tool_use"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
                   "model": asked.get("model", "m"), "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 5, "output_tokens": 1}}
        if not asked.get("stream"):
            content = [{"type": "text", "text": "The file is made."}]
            if stop == "tool_use":
                content = [{**use, "input": order}]
            return self.say(200, {**message, "content": content, "stop_reason": stop})
        out = self.stream()
        out.event("message_start", {"type": "message_start", "message": message})
        if stop == "end_turn":
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "The file is made."}
        else:
            block, delta = use, {"type": "input_json_delta", "partial_json": json.dumps(order)}
        for name, more in [("content_block_start", {"content_block": block}),
                           ("content_block_delta", {"delta": delta}), ("content_block_stop", {})]:
            out.event(name, {"type": name, "index": 0, **more})
        out.event("message_delta", {"type": "message_delta", "usage": {"output_tokens": 9},
                                    "delta": {"stop_reason": stop, "stop_sequence": None}})
        out.event("message_stop", {"type": "message_stop"})
        out.end()

    def model(self, asked):
        """OpenAI's Responses API."""
        outputs = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
        done = any(isinstance(i, dict) and i.get("type") in outputs for i in asked.get("input", []))
        if done:
            item = {"type": "message", "id": "m1", "role": "assistant",
                    "content": [{"type": "output_text", "text": "The file is made."}]}
        else:
            orders = {"exec_command": {"cmd": COMMAND}, "shell_command": {"command": COMMAND},
                      "shell": {"command": ["sh", "-c", COMMAND]}}
            tools = [tool.get("name") for tool in asked.get("tools", [])]
            name = next((name for name in orders if name in tools), "exec_command")
            item = {"type": "function_call", "id": "f1", "call_id": "call_1", "name": name,
                    "arguments": json.dumps(orders[name])}
        answer = {"id": "resp_1", "object": "response", "status": "in_progress", "output": [],
                  "model": asked.get("model")}
        out = self.stream()
        out.event("response.created", {"type": "response.created", "response": answer})
        for name in ("response.output_item.added", "response.output_item.done"):
            out.event(name, {"type": name, "output_index": 0, "item": item})
        usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": 2}
        out.event("response.completed", {"type": "response.completed", "response": {
            **answer, "status": "completed", "output": [item], "usage": usage}})
        out.end()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("service.pem", "service.key")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Service)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
