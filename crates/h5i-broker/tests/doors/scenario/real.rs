//! Programs that exist.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;

use h5i_broker::Diverted;
use h5i_testkit::{Need, have};

use crate::world::{HOST, RUN, World};

/// Takes connections as a relay would, and hands them over. Yields where it listens.
fn relay(world: &Arc<World>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = Arc::downgrade(world);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Some(world) = world.upgrade() else { return };
            let mut diverted = Diverted::new(stream.into(), "intercept");
            diverted.run = Some(RUN);
            world.broker().intercept(diverted).unwrap();
        }
    });
    port
}

/// What a program writes when it is given this input.
fn output(program: &str, args: &[&str], envs: &[(&str, &str)], input: &[u8]) -> String {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("PATH", "/usr/bin:/bin").envs(envs.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn curl() {
    const CURL: &str = "/usr/bin/curl";
    if !have("curl", Need::Program(CURL)) {
        return;
    }
    let world = Arc::new(World::new());
    let directory = tempfile::tempdir().unwrap();
    let trusted = directory.path().join("box.pem");
    std::fs::write(&trusted, world.broker().authority().unwrap()).unwrap();
    let service = format!("{HOST}:{}", world.server.address.port());
    let instead = format!("{service}:127.0.0.1:{}", relay(&world));
    let (url, token) = (format!("http://127.0.0.1:{}", world.port), format!("x:{}", world.token));
    let by_name = ["--cacert", trusted.to_str().unwrap(), "--connect-to", &instead];
    let ways: [(String, Vec<&str>); 3] = [
        (url, vec!["-u", &token]),
        (format!("https://{service}"), [&by_name[..], &["--http1.1"]].concat()),
        (format!("https://{service}"), [&by_name[..], &["--http2"]].concat()),
    ];
    let body = vec![b'x'; 3_000_000];
    for (base, more) in ways {
        let run = |path: &str, args: &[&str], input: &[u8]| {
            let url = format!("{base}{path}");
            output(
                CURL,
                &[&["-sS", "--max-time", "20"], &more[..], args, &[&url]].concat(),
                &[],
                input,
            )
        };
        assert_eq!(run("/ok", &[], b""), "ok");
        // Waits to be told to go on, for it is large.
        assert_eq!(run("/count", &["--data-binary", "@-"], &body), "3000000");
        // In chunks.
        assert_eq!(run("/count", &["-T", "-", "-X", "POST"], &body), "3000000");
        assert_eq!(run("/down?5000000", &[], b"").len(), 5_000_000);
        let refused = run("/a/../ok", &["--path-as-is", "-w", " %{http_code}"], b"");
        assert!(refused.ends_with(" 400") && refused.contains("h5i refused"), "{refused}");
        // Two on one connection.
        assert_eq!(run("/ok", &[&format!("{base}/ok")], b""), "okok");
    }
}

pub(crate) fn python() {
    const PYTHON: &str = "/usr/bin/python3";
    if !have("python", Need::Program(PYTHON)) {
        return;
    }
    let world = Arc::new(World::new());
    let directory = tempfile::tempdir().unwrap();
    let trusted = directory.path().join("box.pem");
    std::fs::write(&trusted, world.broker().authority().unwrap()).unwrap();
    // As strict as it can be about certificates.
    let script = "import http.client, os, socket, ssl\n\
        context = ssl.create_default_context(cafile=os.environ['TRUSTED'])\n\
        context.verify_flags |= ssl.VERIFY_X509_STRICT\n\
        host, port = os.environ['SERVICE'].split(':')\n\
        class Led(http.client.HTTPSConnection):\n\
        \x20   def connect(self):\n\
        \x20       raw = socket.create_connection(('127.0.0.1', int(os.environ['LED'])))\n\
        \x20       self.sock = context.wrap_socket(raw, server_hostname=host)\n\
        led = Led(host, int(port))\n\
        for _ in range(3):\n\
        \x20   led.request('POST', '/count', body=iter([b'a' * 1000] * 10), encode_chunked=True,\n\
        \x20       headers={'transfer-encoding': 'chunked'})\n\
        \x20   print(led.getresponse().read().decode(), end=' ')\n";
    let led = relay(&world).to_string();
    let service = format!("{HOST}:{}", world.server.address.port());
    let envs = [("TRUSTED", trusted.to_str().unwrap()), ("SERVICE", &service), ("LED", &led)];
    assert_eq!(output(PYTHON, &["-"], &envs, script.as_bytes()), "10000 10000 10000 ");
}

pub(crate) fn node() {
    const NODE: &str = "/usr/bin/node";
    if !have("node", Need::Program(NODE)) {
        return;
    }
    let world = Arc::new(World::new());
    world.server.events.send(3).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let trusted = directory.path().join("box.pem");
    std::fs::write(&trusted, world.broker().authority().unwrap()).unwrap();
    let script = "const https = require('https');\n\
        const { BASE, TOKEN, SERVICE, LED } = process.env;\n\
        const led = path => new Promise((done, fail) => {\n\
        \x20 const [servername] = SERVICE.split(':');\n\
        \x20 https.get({ host: '127.0.0.1', port: LED, path, servername, headers: { host: SERVICE } },\n\
        \x20   answer => { let text = ''; answer.on('data', part => text += part);\n\
        \x20     answer.on('end', () => done(text)); }).on('error', fail);\n\
        });\n\
        (async () => {\n\
        \x20 const headers = { authorization: `Bearer ${TOKEN}` };\n\
        \x20 for (let count = 0; count < 3; count++) {\n\
        \x20   const body = 'x'.repeat(100000);\n\
        \x20   const answer = await fetch(`${BASE}/count`, { method: 'POST', headers, body });\n\
        \x20   process.stdout.write(await answer.text() + ' ');\n\
        \x20 }\n\
        \x20 const stream = (await fetch(`${BASE}/events`, { headers })).body.getReader();\n\
        \x20 let heard = '';\n\
        \x20 while (!heard.includes('data: 2')) {\n\
        \x20   heard += new TextDecoder().decode((await stream.read()).value);\n\
        \x20 }\n\
        \x20 await stream.cancel();\n\
        \x20 console.log(await led('/ok'));\n\
        \x20 process.exit(0);\n\
        })();\n";
    let (led, base) = (relay(&world).to_string(), format!("http://127.0.0.1:{}", world.port));
    let service = format!("{HOST}:{}", world.server.address.port());
    let envs = [
        ("NODE_EXTRA_CA_CERTS", trusted.to_str().unwrap()),
        ("SERVICE", &service),
        ("LED", &led),
        ("BASE", &base),
        ("TOKEN", &world.token),
    ];
    assert_eq!(output(NODE, &["-"], &envs, script.as_bytes()), "100000 100000 100000 ok\n");
}
