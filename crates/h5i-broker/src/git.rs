//! Git's smart HTTP, as far as a grant for git has to understand it. gitprotocol-http(5).

use std::future::poll_fn;

use h5i_policy::GitUse;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::event::Denial;
use crate::refusal::Refusal;
use crate::target::Target;
use crate::upload::{Source, Stopped};

mod commands;

use commands::Commands;

const FETCH: &str = "git-upload-pack";
const PUSH: &str = "git-receive-pack";

/// From this length on no reference is added to a path, in bytes.
const TOLD: usize = 1024;

/// What a request asks of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// What there is to be fetched, or the objects.
    Fetch,
    /// What there is to be pushed to.
    Pushable,
    /// To push: the body begins with what is to become of which reference.
    Push,
}

/// What a request asks of git, when the grant lets git ask that. A push is still to be judged by
/// its commands.
pub(crate) fn asks(
    git: &GitUse,
    method: &str,
    target: &Target,
    headers: &HeaderMap,
) -> Result<Asks, Refusal> {
    let path = target.path();
    let lists = path.ends_with("/info/refs");
    let asks = match (method, target.query()) {
        ("GET", Some(_)) if lists && service(target) == Some(FETCH) => Asks::Fetch,
        ("GET", Some(_)) if lists && service(target) == Some(PUSH) => Asks::Pushable,
        ("POST", None) if path.ends_with("/git-upload-pack") => Asks::Fetch,
        ("POST", None) if path.ends_with("/git-receive-pack") => Asks::Push,
        _ => return Err(refused("it is none of those that git makes to fetch or push")),
    };
    if asks == Asks::Fetch {
        return Ok(asks);
    }
    if !matches!(git, GitUse::Push(_)) {
        return Err(refused("it would push"));
    }
    // What is packed would be one thing here and another where it is unpacked.
    if asks == Asks::Push && headers.contains_key(CONTENT_ENCODING) {
        return Err(refused("its push is compressed as a whole, and can't be read"));
    }
    Ok(asks)
}

/// The service of git that a request asks after, as it is told.
pub(crate) fn service(target: &Target) -> Option<&str> {
    let service = target.query()?.strip_prefix("service=")?;
    matches!(service, FETCH | PUSH).then_some(service)
}

/// Reads the commands of a push, judges them, and leaves its body as it was. The references that
/// it names are added to `path`, also when it is refused.
pub(crate) async fn judge_push(
    git: &GitUse,
    source: &mut Source,
    path: &mut String,
) -> Result<(), Stopped> {
    let mut commands = Commands::default();
    let read = read(&mut commands, source).await;
    for reference in commands.references() {
        // An event has no room for all of them.
        if path.len() < TOLD {
            path.push(' ');
            path.push_str(&String::from_utf8_lossy(reference));
        }
    }
    read?;
    commands.judge(git).map_err(Stopped::Refused)?;
    let rest = std::mem::replace(source, Source::Empty);
    *source = Source::Begun(commands.came(), Box::new(rest));
    Ok(())
}

/// Reads to the end of the commands; where there are none, to the end of the body.
async fn read(commands: &mut Commands, source: &mut Source) -> Result<(), Stopped> {
    while !commands.is_whole() {
        match poll_fn(|cx| source.poll(cx)).await {
            Some(bytes) => commands.push(&bytes?).map_err(Stopped::Refused)?,
            None if commands.may_end() => return Ok(()),
            None => return Err(Stopped::Refused(refused(commands::MALFORMED))),
        }
    }
    Ok(())
}

fn refused(why: &'static str) -> Refusal {
    Refusal::because(Denial::Git, why)
}

#[cfg(test)]
mod tests;
