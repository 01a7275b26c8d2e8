#!/usr/bin/env bash
# usage: rehearsal.sh H5I UID GID, in network and mount namespaces of its own and in a scratch
# directory below a home, with the agents in tools/node_modules.
set -euo pipefail
h5i=$1 uid=$2 gid=$3
here=$PWD
access=sk-ant-oat01-CANARYaccess7hJ2kQ9xV4mB1nZ8
renewed=sk-ant-oat01-CANARYrenewed3fL6pW0sT5yC2dRq
key=sk-CANARYkey5gH8jK1mN4pQ7rS0tU

# Names and certificates of the makers' services.
names='api.anthropic.com api.openai.com platform.claude.com'
echo "127.0.0.1 localhost $names" > hosts
openssl req -x509 -newkey rsa:2048 -nodes -keyout authority.key -out authority.pem \
    -subj '/CN=stands in' -days 2 2> /dev/null
openssl req -newkey rsa:2048 -nodes -keyout service.key -out service.csr -subj '/CN=service' 2> /dev/null
printf 'subjectAltName=%s\n' "$(printf 'DNS:%s,' $names | sed 's/,$//')" > names
openssl x509 -req -in service.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
    -out service.pem -days 2 -extfile names 2> /dev/null
mount --bind hosts /etc/hosts

# The person: a repository, a home with two logins, a policy that has the agents by intercept, too.
mkdir -p home/.claude home/.codex config/h5i state repo
far=4102444800000
login() {
    printf '{"claudeAiOauth":{"accessToken":"%s","refreshToken":"sk-ant-ort01-CANARYrefresh","expiresAt":%s,"scopes":["user:inference"],"subscriptionType":"max"}}' \
        "$1" "$2" > home/.claude/.credentials.json
    chmod 600 home/.claude/.credentials.json
}
login "$access" "$far"
printf '{"OPENAI_API_KEY":"%s"}' "$key" > home/.codex/auth.json
chmod 600 home/.codex/auth.json
cat > config/h5i/policy.toml << POLICY
version = 1
[profile.claude-reverse]
extends = "agent-claude"
[profile.claude-reverse.fs]
read = ["$here/tools"]
[profile.codex-reverse]
extends = "agent-codex"
[profile.codex-reverse.fs]
read = ["$here/tools"]
[profile.claude-intercept]
extends = "agent-claude"
[profile.claude-intercept.fs]
read = ["$here/tools"]
[profile.claude-intercept.grant.anthropic]
host = "api.anthropic.com"
secret = "login:claude"
methods = ["GET", "POST"]
paths = ["/v1/messages", "/v1/messages/**", "/v1/models", "/v1/models/**"]
via = "intercept"
[profile.codex-intercept]
extends = "agent-codex"
[profile.codex-intercept.fs]
read = ["$here/tools"]
[profile.codex-intercept.grant.openai]
host = "api.openai.com"
secret = "login:codex"
methods = ["GET", "POST"]
paths = ["/v1/responses", "/v1/responses/**", "/v1/models", "/v1/models/**"]
via = "intercept"
POLICY
git -C repo init --quiet -b main
echo one > repo/a.txt
git -C repo add a.txt
git -C repo -c user.name=Test -c user.email=test@example.com commit --quiet -m first

: > seen
python3 service.py seen tokens > service.out 2>&1 &
service=$!
trap 'kill $service 2> /dev/null || true' EXIT
until grep -q ready service.out; do
    kill -0 $service || { cat service.out; exit 1; }
    sleep 0.05
done
[ "$uid" = 0 ] || chown -R 0:0 home config state repo

# h5i as who began this; its namespaces are those of this script.
h5i() {
    local back=()
    [ "$uid" = 0 ] || back=(unshare --map-user="$uid" --map-group="$gid")
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$here/home" \
        XDG_STATE_HOME="$here/state" XDG_CONFIG_HOME="$here/config" TERM=dumb \
        SSL_CERT_FILE="$here/authority.pem" "${back[@]}" "$h5i" -C "$here/repo" "$@"
}

failed=0
wrong() { echo "FAILED  $*"; failed=1; }

# rehearse PROFILE SECRET COMMAND…: the agent makes a file by a command in the box.
rehearse() {
    local profile=$1 secret=$2
    shift 2
    : > seen
    h5i box create "$profile" --profile "$profile" 2> /dev/null
    h5i box run "$profile" --timeout 120s -- "$@" > out 2> err < /dev/null || { cat out err; wrong "$profile: the agent"; }
    [ "$(h5i box run "$profile" -- cat made.txt 2> /dev/null)" = from-the-agent ] \
        || { cat out err; wrong "$profile: the task"; }
    local asked with
    asked=$(grep -c . seen || true)
    with=$(grep -cF -- "$secret" seen || true)
    { [ "$asked" -gt 1 ] && [ "$with" -gt 1 ]; } || wrong "$profile: the key at the service ($with of $asked)"
    local found
    found=$(h5i box run "$profile" -- sh -c '
        grep -rlE "C[A]NARY(access|renewed|refresh|next|key)" /work /home /run /tmp /etc /dev/shm 2> /dev/null
        for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done 2> /dev/null |
            grep -acE "C[A]NARY(access|renewed|refresh|next|key)"' 2> /dev/null || true)
    [ "$found" = 0 ] || wrong "$profile: a secret in the box: $found"
    local uses
    uses=$(h5i box log "$profile" --lane broker --json | grep -c '"kind":"grant-use"')
    [ "$uses" -ge "$with" ] || wrong "$profile: $uses uses on record of $with"
    h5i box export "$profile" -o "$here/bundle" --force > /dev/null 2>&1 || wrong "$profile: export"
    ! grep -rqF CANARY bundle || wrong "$profile: a secret in the bundle"
    h5i receipt verify "$here/bundle" > /dev/null || wrong "$profile: the receipt"
    h5i box rm "$profile" --force > /dev/null 2>&1
    printf '%-18s %s requests, %s with the secret, %s on record\n' "$profile" "$asked" "$with" "$uses"
}

bin=$here/tools/node_modules/.bin
claude=("$bin/claude" -p 'make the file' --allowedTools Bash)
codex=("$bin/codex" exec --dangerously-bypass-approvals-and-sandbox 'make the file')
rehearse claude-reverse "$access" "${claude[@]}"
rehearse claude-intercept "$access" "${claude[@]}"
rehearse codex-reverse "$key" "${codex[@]}"
rehearse codex-intercept "$key" "${codex[@]}"

# A login that is over before it begins, and one that the service stops taking in the middle.
login "$access" 1000
rehearse claude-reverse "$renewed" "${claude[@]}"
grep -q "$renewed" home/.claude/.credentials.json || wrong 'renewal: the file'
login "$access" "$far"
echo "$access" > tokens
rehearse claude-intercept "$renewed" "${claude[@]}"
grep -q "$access" seen || wrong 'renewal: the first token was not tried'
exit $failed
