"""Makes what the registries serve. usage: packages.py DIRECTORY

Below the directory stands what each host serves; FILE.moved holds where it has FILE now. Each
language has `greeting`, which needs `words` and runs a program of its own when it is installed or
built, and `stranger`, whose files lie at a host of their own.
"""
import base64, gzip, hashlib, io, json, os, sys, tarfile, zipfile

NPM, PIP, CRATES, GO = "npm.example", "pip.example", "crates.example", "go.example"
FILES, STRANGER = "files.example", "stranger.example"


def put(host, path, data):
    path = os.path.join(sys.argv[1], host, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def packed(files):
    """A gzipped tar of these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(out.getvalue(), mtime=0)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def npm(name, host, needs, script):
    package = {"name": name, "version": "1.0.0", "main": "index.js", "dependencies": needs}
    if script:
        package["scripts"] = {"postinstall": "node mark.js"}
    tar = packed({
        "package/package.json": json.dumps(package),
        "package/index.js": f"module.exports = '{name}';\n",
        "package/mark.js": "require('fs').writeFileSync('marked', 'by the package');\n",
    })
    path = f"-/{name}-1.0.0.tgz"
    put(host, path, tar)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tar).digest()).decode()
    package["dist"] = {"tarball": f"https://{host}/{path}", "integrity": integrity}
    package["hasInstallScript"] = script
    put(NPM, name, json.dumps({
        "name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": package}}))


# A build backend in the source itself: it needs no other package, and starts a program.
BACKEND = """\
import base64, hashlib, os, subprocess, zipfile

def build_wheel(directory, config=None, metadata=None):
    subprocess.run(["sh", "-c", ": built by the package"], check=True)
    files = {
        "NAME.py": "import words\\nsaid = words.said\\n",
        "NAME-1.0.dist-info/METADATA":
            "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\nRequires-Dist: words\\n",
        "NAME-1.0.dist-info/WHEEL":
            "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["NAME-1.0.dist-info/RECORD"] = "".join(f"{name},,\\n" for name in files)
    wheel = "NAME-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, wheel), "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel
"""


def pip(name, file, data, host):
    """A file that the index serves itself, or moved to where it is."""
    put(PIP, f"simple/{name}/index.html",
        f'<!DOCTYPE html><html><body><a href="/files/{file}">{file}</a></body></html>')
    put(host, file, data)
    put(PIP, f"files/{file}.moved", f"https://{host}/{file}")


def sdist(name):
    return packed({
        f"{name}-1.0/PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0/pyproject.toml":
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        f"{name}-1.0/backend.py": BACKEND.replace("NAME", name),
    })


def crate(name, host, needs, script):
    wanted = "".join(f'{need} = "1"\n' for need in needs)
    files = {
        f"{name}-1.0.0/Cargo.toml":
            f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\n{wanted}',
        f"{name}-1.0.0/src/lib.rs": "pub const SAID: &str = \"hello\";\n" if not needs else
            "".join(f"pub use {need}::SAID;\n" for need in needs),
    }
    if script:
        files[f"{name}-1.0.0/build.rs"] = (
            'fn main() {\n    let program = std::process::Command::new("sh")'
            '.args(["-c", ": built by the package"]).status();\n'
            "    assert!(program.unwrap().success());\n}\n")
    data = packed(files)
    put(host, f"crates/{name}/1.0.0/download", data)
    if host != FILES:
        put(FILES, f"crates/{name}/1.0.0/download.moved",
            f"https://{host}/crates/{name}/1.0.0/download")
    entry = {"name": name, "vers": "1.0.0", "cksum": hashlib.sha256(data).hexdigest(),
             "features": {}, "yanked": False,
             "deps": [{"name": need, "req": "^1", "features": [], "optional": False,
                       "default_features": True, "target": None, "kind": "normal"}
                      for need in needs]}
    put(CRATES, f"index/{name[:2]}/{name[2:4]}/{name}", json.dumps(entry) + "\n")


def module(name, host):
    path, version = f"code.example/{name}", "v1.0.0"
    mod = f"module {path}\n\ngo 1.17\n"
    put(GO, f"{path}/@v/list", version + "\n")
    put(GO, f"{path}/@v/{version}.info",
        json.dumps({"Version": version, "Time": "2020-01-01T00:00:00Z"}))
    put(GO, f"{path}/@v/{version}.mod", mod)
    file = f"{path}/@v/{version}.zip"
    put(host, file, zipped({
        f"{path}@{version}/go.mod": mod,
        f"{path}@{version}/{name}.go": f"package {name}\n\nconst Said = \"hello\"\n",
    }))
    if host != GO:
        put(GO, file + ".moved", f"https://{host}/{file}")


npm("words", NPM, {}, False)
npm("greeting", NPM, {"words": "^1.0.0"}, True)
npm("stranger", STRANGER, {}, False)

WORDS = zipped({
    "words.py": "said = 'hello'\n",
    "words-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: words\nVersion: 1.0\n",
    "words-1.0.dist-info/WHEEL":
        "Wheel-Version: 1.0\nGenerator: own\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "words-1.0.dist-info/RECORD": "words.py,,\n",
})
pip("words", "words-1.0-py3-none-any.whl", WORDS, FILES)
pip("greeting", "greeting-1.0.tar.gz", sdist("greeting"), FILES)
pip("stranger", "stranger-1.0.tar.gz", sdist("stranger"), STRANGER)

put(CRATES, "index/config.json", json.dumps({"dl": f"https://{FILES}/crates", "api": None}))
crate("words", FILES, [], False)
crate("greeting", FILES, ["words"], True)
crate("stranger", STRANGER, [], False)

module("words", GO)
module("stranger", STRANGER)
