//! A stand whose user has a policy with a grant for the service.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::service::{CANARY, Service};
use crate::stand::{Said, Stand};

pub(crate) struct With {
    pub(crate) stand: Stand,
    pub(crate) service: Service,
    named: Named,
}

/// Where the service's name is from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Loopback,
    ByHosts,
}

impl With {
    /// A box `a` with the grant `api`; `more` are lines of it. Its secret is a bearer token, unless
    /// they say where it goes.
    pub(crate) fn a_box(host: &str, via: &str, more: &str) -> Self {
        let names = match via {
            "reverse" => "base_url = \"API_URL\"\ntoken = \"API_TOKEN\"\n",
            _ => "",
        };
        let placed = ["header =", "query ="].iter().any(|key| more.contains(key));
        let header = if placed { "" } else { "header = \"authorization: Bearer {}\"\n" };
        let document = |port| {
            format!(
                "version = 1\n[profile.asks]\ntier = \"supervised\"\n\
             [profile.asks.grant.api]\nhost = \"{host}\"\nport = {port}\nsecret = \"env:API_KEY\"\n\
             {header}via = \"{via}\"\n{names}{more}"
            )
        };
        let with = Self::of(Stand::new(), Service::new(), &document);
        let named = if host == "localhost" { Named::Loopback } else { Named::ByHosts };
        Self { named, ..with }
    }

    /// A box `a` by the profile `asks` of a document, which is told the service's port.
    pub(crate) fn of(stand: Stand, service: Service, document: &dyn Fn(u16) -> String) -> Self {
        fs::write(stand.path().join("authority.pem"), &service.authority).unwrap();
        stand.user_policy(&document(service.port));
        let with = Self { stand, service, named: Named::ByHosts };
        with.ok(&["box", "create", "a", "--profile", "asks"]);
        with
    }

    /// A box `a`, and a profile `deploy` with the grant `api`.
    pub(crate) fn deploying(via: &str) -> Self {
        let (host, names, named) = match via {
            "reverse" => {
                ("localhost", "base_url = \"API_URL\"\ntoken = \"API_TOKEN\"\n", Named::Loopback)
            }
            _ => ("api.test", "", Named::ByHosts),
        };
        let document = |port| {
            format!(
                "version = 1\n[profile.asks]\n[profile.deploy.grant.api]\n\
                 host = \"{host}\"\nport = {port}\nsecret = \"env:API_KEY\"\n\
                 header = \"authorization: Bearer {{}}\"\nvia = \"{via}\"\n{names}\
                 methods = [\"GET\", \"POST\"]\npaths = [\"/**\"]\n"
            )
        };
        let with = Self::of(Stand::new(), Service::new(), &document);
        Self { named, ..with }
    }

    /// h5i with the key in its environment; for a box that asks `api.test`, where that is this host.
    pub(crate) fn command(&self) -> Command {
        let mut command = match self.named {
            Named::Loopback => self.stand.command(),
            Named::ByHosts => self.with_names(),
        };
        command.env("API_KEY", CANARY);
        command.env("SSL_CERT_FILE", self.stand.path().join("authority.pem"));
        command
    }

    /// h5i with a file of names in a mount namespace of its own; its user stays who it is, and has
    /// no more rights than before.
    fn with_names(&self) -> Command {
        let hosts = self.stand.path().join("hosts");
        fs::write(&hosts, "127.0.0.1 localhost api.test api.anthropic.com\n8.8.8.8 public.test\n")
            .unwrap();
        let mut command = self.stand.program("unshare");
        let mount = format!("mount --bind '{}' /etc/hosts && exec", hosts.display());
        if crate::stand::is_root() {
            command.args(["-m", "sh", "-c", &format!("{mount} \"$@\""), "sh", crate::stand::H5I]);
        } else {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            let back = format!(
                "{mount} unshare --map-user={} --map-group={} \"$@\"",
                user.as_raw(),
                group.as_raw()
            );
            command.args(["-rm", "sh", "-c", &back, "sh", crate::stand::H5I]);
        }
        command
    }

    pub(crate) fn h5i(&self, words: &[&str]) -> Said {
        Said::of(self.command().args(words).output().unwrap())
    }

    pub(crate) fn ok(&self, words: &[&str]) -> Said {
        let said = self.h5i(words);
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        said
    }

    /// What a script in the box prints; it must end with 0.
    pub(crate) fn sh(&self, script: &str) -> String {
        self.sh_in("a", script)
    }

    pub(crate) fn sh_in(&self, name: &str, script: &str) -> String {
        let said = self.ok(&["box", "run", name, "--", "sh", "-c", script]);
        String::from_utf8(said.out).unwrap().trim_end().to_owned()
    }

    /// The records of these kinds.
    pub(crate) fn records(&self, kinds: &[&str]) -> Vec<Value> {
        self.records_of("a", kinds)
    }

    pub(crate) fn records_of(&self, name: &str, kinds: &[&str]) -> Vec<Value> {
        let log = self.stand.ok(&["box", "log", name, "--json"]);
        let all = log.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.filter(|record| kinds.contains(&record["kind"].as_str().unwrap())).collect()
    }
}

/// Asks the service by the grant: status, then the body.
pub(crate) fn ask(path: &str) -> String {
    format!("curl -s -w ' %{{http_code}}' -H \"authorization: Bearer $API_TOKEN\" $API_URL{path}")
}
