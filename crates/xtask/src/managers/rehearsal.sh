#!/usr/bin/env bash
# usage: rehearsal.sh H5I SYSROOT PERSON… in network and mount namespaces of its own, with the other
# files of this rehearsal in the working directory. A person is `root`, `self:UID:GID` (who began
# this, in a user namespace) or the name of a user.
set -euo pipefail
h5i=$1 sysroot=$2
shift 2
from=$PWD
bundle=/etc/ssl/certs/ca-certificates.crt

# Nothing of this is on the host's disk, and every person can walk to it.
mount -t tmpfs -o mode=755 h5i-managers /srv
mkdir /srv/rust /srv/bin /srv/world
mount --bind "$sysroot" /srv/rust
install -m 755 "$h5i" /srv/bin/h5i
install -m 644 "$from"/*.py /srv/world
cd /srv/world

# Each registry has a name, an address and a certificate; who is asked for packages is `files.example`,
# and nobody lists `stranger.example`.
hosts='npm.example=93.184.216.10 pip.example=93.184.216.11 crates.example=93.184.216.12
    go.example=93.184.216.13 files.example=93.184.216.14 stranger.example=93.184.216.15'
echo '127.0.0.1 localhost' > hosts
for host in $hosts; do echo "${host#*=} ${host%=*}" >> hosts; done
openssl req -x509 -newkey rsa:2048 -nodes -keyout authority.key -out authority.pem \
    -subj '/CN=stands in' -days 2 2> /dev/null
openssl req -newkey rsa:2048 -nodes -keyout service.key -out service.csr -subj '/CN=service' 2> /dev/null
names=
for host in $hosts; do names+=,DNS:${host%=*}; done
echo "subjectAltName=${names#,}" > names
openssl x509 -req -in service.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
    -out service.pem -days 2 -extfile names 2> /dev/null
chmod 644 authority.pem
mount --bind hosts /etc/hosts
mount --bind authority.pem "$bundle"
python3 packages.py served
# An address of the host's own is never let out to, so the registries are at the other end of a cable.
# shellcheck disable=SC2086 # One word a host.
coproc registry { exec unshare --net python3 registry.py served $hosts; }
service=$registry_PID
trap 'kill $service 2> /dev/null || true' EXIT
read -r word <&"${registry[0]}" && [ "$word" = here ]
ip link set lo up
ip link add cable type veth peer name cable netns "$service"
ip address add 192.168.77.1/30 dev cable
ip link set cable up
ip route add default via 192.168.77.2
echo cable >&"${registry[1]}"
read -r word <&"${registry[0]}" && [ "$word" = ready ]

failed=0
wrong() { echo "FAILED  $person: $*"; failed=$((failed + 1)); }

# As the person, without anything of who began this.
as_person() {
    local change=()
    case $person in
        root) ;;
        self:*) IFS=: read -r _ uid gid <<< "$person"; change=(unshare --map-user="$uid" --map-group="$gid") ;;
        *) change=(setpriv --reuid "$person" --regid "$person" --init-groups) ;;
    esac
    env -i PATH="$place/home/.cargo/bin:/usr/local/bin:/usr/bin:/bin" HOME="$place/home" XDG_STATE_HOME="$place/state" \
        XDG_CONFIG_HOME="$place/home/.config" TERM=dumb LANG=C.UTF-8 "${change[@]}" "$@"
}

h5i() { as_person /srv/bin/h5i -C "$place/repo" "$@"; }

# A person with registries of their own and a repository.
settle() {
    mkdir -p "$place"/home/{.cargo/bin,.cargo/registry/index,.config/pip,.config/go,.config/h5i} "$place"/{state,out}
    mkdir -p "$place"/repo/{npm,go,cargo/src,cargo-stranger/src}
    cd "$place/home"
    printf 'registry=https://npm.example/\ncafile=%s\nfund=false\naudit=false\nupdate-notifier=false\n' \
        "$bundle" > .npmrc
    printf '[global]\nindex-url = https://pip.example/simple\ncert = %s\ndisable-pip-version-check = true\n' \
        "$bundle" > .config/pip/pip.conf
    printf '[source.crates-io]\nreplace-with = "own"\n[source.own]\nregistry = "sparse+https://crates.example/index/"\n' \
        > .cargo/config.toml
    ln -s /srv/rust/bin/* .cargo/bin
    printf 'GOPROXY=https://go.example\nGOSUMDB=off\n' > .config/go/env
    cat > .config/h5i/policy.toml << 'POLICY'
version = 1
[profile.npm]
tier = "supervised"
seed = ["npm"]
[profile.npm.net]
mode = "allow"
allow = ["@npm"]
[profile.pip]
tier = "supervised"
seed = ["pip"]
[profile.pip.net]
mode = "allow"
allow = ["@pip", "files.example"]
[profile.cargo]
tier = "supervised"
seed = ["cargo"]
[profile.cargo.net]
mode = "allow"
allow = ["@cargo", "files.example"]
[profile.cargo.fs]
read = ["/srv/rust"]
[profile.go]
tier = "supervised"
[profile.go.net]
mode = "allow"
allow = ["@go"]
[profile.go.env]
set = { GOPROXY = "https://go.example", GOSUMDB = "off", GOTOOLCHAIN = "local" }
POLICY
    cd "$place/repo"
    echo '{"name":"work","version":"1.0.0","private":true,"allowScripts":{"greeting":true}}' > npm/package.json
    for crate in cargo cargo-stranger; do
        printf '[package]\nname = "work"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n[dependencies]\n' \
            > $crate/Cargo.toml
    done
    echo 'greeting = "1"' >> cargo/Cargo.toml
    echo 'fn main() { println!("{}", greeting::SAID) }' > cargo/src/main.rs
    echo 'stranger = "1"' >> cargo-stranger/Cargo.toml
    : > cargo-stranger/src/lib.rs
    printf 'module work.example/work\n\ngo 1.17\n' > go/go.mod
    printf 'node_modules\ntarget\nsite\n' > .gitignore
    [ "$person" = root ] || [ "${person%%:*}" = self ] || chown -R "$person:$person" "$place"
    as_person git init --quiet -b main
    as_person git add .
    as_person git -c user.name=Test -c user.email=test@example.com commit --quiet -m first
    cd /srv/world
}

# run PROFILE SCRIPT OPTION…: the script in a new box. Its code, what was said and how long it took
# are left in `code`, `out` and `took` (milliseconds), its receipt in `receipt`.
run() {
    local profile=$1 script=$2 began
    shift 2
    out=$place/out/said receipt=$place/out/bundle/receipt.json
    h5i box create try --profile "$profile" "$@" > "$out" 2>&1 || { cat "$out"; wrong "$profile: create"; }
    began=${EPOCHREALTIME/./}
    code=0
    h5i box run try --timeout 120s -- sh -ec "$script" > "$out" 2>&1 < /dev/null || code=$?
    took=$(((${EPOCHREALTIME/./} - began) / 1000))
    h5i box status try > "$place/out/status" 2>&1 || wrong "$profile: status"
    h5i box export try -o "$place/out/bundle" --force > "$place/out/exported" 2>&1 \
        || { cat "$place/out/exported"; wrong "$profile: export"; }
    h5i receipt verify "$place/out/bundle" > /dev/null || wrong "$profile: the receipt"
    h5i box rm try --force > /dev/null 2>&1 || wrong "$profile: rm"
}

# works PROFILE SCRIPT HOSTS PROGRAM OPTION…: it succeeds, and the receipt has exactly these hosts,
# no refusal, and a program with these words among its arguments.
works() {
    local profile=$1 script=$2 wanted=$3 program=$4 before=$failed
    shift 4
    run "$profile" "$script" "$@"
    [ "$code" = 0 ] || { cat "$out"; wrong "$profile: exit $code"; }
    found=$(python3 receipt.py hosts "$receipt" | xargs)
    [ "$found" = "$wanted" ] || wrong "$profile: hosts on record: $found"
    found=$(python3 receipt.py refused "$receipt" | xargs)
    [ -z "$found" ] || wrong "$profile: refused: $found"
    python3 receipt.py programs "$receipt" | grep -F -- "$program" > /dev/null || wrong "$profile: $program is not on record"
    [ "$failed" != "$before" ] || printf '%-9s %-6s works    %5s ms  %s\n' "$person" "$profile" "$took" "$wanted"
}

# fails PROFILE SCRIPT HOSTS: it fails at once, because nobody lists `stranger.example`, and that is
# told with the rule that would allow it; the hosts before that are on record.
fails() {
    local profile=$1 script=$2 wanted=$3 rule before=$failed
    rule='name stranger.example ×[0-9]* first by /[^ ]*: no rule lists it; allow at create: --allow stranger.example:443, or another port$'
    run "$profile" "$script"
    [ "$code" != 0 ] || { cat "$out"; wrong "$profile: a stranger was reached"; }
    # From the refusal on: how long a program takes to start is not what this is about.
    waited=$(python3 receipt.py waited "$receipt")
    [ "$waited" -lt 5000 ] || { cat "$out"; wrong "$profile: failed $waited ms after the refusal"; }
    grep -q "^refused  $rule" "$out" || { cat "$out"; wrong "$profile: the refusal is not told"; }
    grep -q 'name stranger.example ×' "$place/out/status" || { cat "$place/out/status"; wrong "$profile: status"; }
    found=$(python3 receipt.py hosts "$receipt" | xargs)
    [ "$found" = "$wanted" ] || wrong "$profile: hosts on record before the refusal: $found"
    found=$(python3 receipt.py refused "$receipt" | xargs)
    [ "$found" = stranger.example ] || wrong "$profile: refused on record: $found"
    [ "$failed" != "$before" ] || printf '%-9s %-6s fails    %5s ms  after the refusal of stranger.example, having reached %s\n' \
        "$person" "$profile" "$waited" "$wanted"
}

# manager PROFILE HOSTS PROGRAM INSTALL STRANGER: a package with a dependency and a program of its own,
# a dependency whose file is at a host that nobody lists, and the same with the rule that was told.
manager() {
    local profile=$1 hosts=$2 program=$3 install=$4 stranger=$5
    local bare='! env | grep -qi _proxy=;'
    works "$profile" "$bare $install" "$hosts" "$program"
    fails "$profile" "$stranger" "$hosts"
    works "$profile" "$stranger" "$hosts stranger.example" '' --allow stranger.example
}

for person in "$@"; do
    place=/srv/${person%%:*}
    settle
    manager npm npm.example 'mark.js' \
        'cd npm; npm install greeting; grep -q "by the package" node_modules/greeting/marked; node -e "require(\"words\")"' \
        'cd npm; npm install --fetch-retries=0 stranger'
    manager pip 'files.example pip.example' ': built by the package' \
        'pip3 install --no-cache-dir --target site greeting; PYTHONPATH=site python3 -c "import greeting; assert greeting.said"' \
        'pip3 install --no-cache-dir --retries 0 --target site words stranger'
    manager cargo 'crates.example files.example' ': built by the package' \
        'cd cargo; cargo fetch; cargo run --offline' \
        'cd cargo-stranger; CARGO_NET_RETRY=0 cargo fetch'
    if [ -x /usr/bin/go ] || [ -x /usr/local/bin/go ]; then
        manager go go.example '' \
            'cd go; go mod download -x code.example/words@v1.0.0' \
            'cd go; go mod download code.example/stranger@v1.0.0'
    fi
done
exit $((failed > 0))
