//! Landing as a commit on a new branch.

use git2::{Branch, ErrorCode, ObjectType, Oid, Repository};

use super::{LandError, Merged, failed, hand_over};

/// What the commit says; the author is the one of the host's git configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The first line.
    pub subject: String,
    /// What follows it, if anything.
    pub body: Option<String>,
    /// Trailers, name and value, in order.
    pub trailers: Vec<(&'static str, String)>,
}

impl Message {
    /// The message as git has it. Control characters, which could end a line early and forge a
    /// trailer, become spaces.
    fn text(&self) -> String {
        let line = |text: &str| {
            text.chars().map(|c| if crate::escape::is_unprintable(c) { ' ' } else { c }).collect()
        };
        let mut paragraphs: Vec<String> = vec![line(&self.subject)];
        paragraphs.extend(self.body.as_deref().map(line));
        let trailer = |(name, value): &(&str, String)| format!("{name}: {}", line(value));
        paragraphs.push(self.trailers.iter().map(trailer).collect::<Vec<_>>().join("\n"));
        paragraphs.join("\n\n") + "\n"
    }
}

impl Merged<'_> {
    /// Checks that a branch of this name can be made.
    ///
    /// # Errors
    /// [`LandError::BranchName`], [`LandError::BranchExists`].
    pub fn check_branch(host: &Repository, branch: &str) -> Result<(), LandError> {
        let invalid = || LandError::BranchName { name: branch.to_owned() };
        match Branch::name_is_valid(branch) {
            // A name that begins with a dash can't be given to git's own commands.
            Ok(true) if !branch.starts_with('-') && branch != "HEAD" => {}
            _ => return Err(invalid()),
        }
        let names: Vec<String> = host
            .references()
            .map_err(failed("list the branches"))?
            .filter_map(Result::ok)
            .filter_map(|found| {
                let name = found.name_bytes().strip_prefix(b"refs/heads/")?;
                Some(String::from_utf8_lossy(name).into_owned())
            })
            .collect();
        let stands_below = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'))
        };
        let taken = names.into_iter().find(|name| {
            name == branch || stands_below(name, branch) || stands_below(branch, name)
        });
        match taken {
            Some(name) => Err(LandError::BranchExists { name }),
            None => Ok(()),
        }
    }

    /// Whether the host's configuration says who commits.
    ///
    /// # Errors
    /// [`LandError::NoIdentity`].
    pub fn check_author(host: &Repository) -> Result<(), LandError> {
        host.signature().map(drop).map_err(LandError::NoIdentity)
    }

    /// Writes the objects to the host and makes the branch `branch` there, with one commit on top of
    /// `parent`. Working tree, index and every other branch stay as they are.
    ///
    /// # Errors
    /// [`LandError::Conflicts`] if there are any, [`LandError::NoIdentity`],
    /// [`LandError::BranchName`], [`LandError::BranchExists`]; nothing refers to what was written
    /// until the last step.
    pub fn commit(
        mut self,
        host: &Repository,
        branch: &str,
        parent: Option<Oid>,
        message: &Message,
    ) -> Result<(Oid, Oid), LandError> {
        let conflicts = self.conflicts()?;
        if !conflicts.is_empty() {
            return Err(LandError::Conflicts { conflicts });
        }
        Self::check_branch(host, branch)?;
        let author = host.signature().map_err(LandError::NoIdentity)?;
        let tree =
            self.index.write_tree_to(&self.store.repo).map_err(failed("write the merged tree"))?;
        let odb = host.odb().map_err(failed("open the objects of the repository"))?;
        hand_over(self.store, &odb, tree, ObjectType::Tree)?;
        let parent = parent
            .map(|id| host.find_commit(id).map_err(failed("read the current commit")))
            .transpose()?;
        let parents: Vec<_> = parent.iter().collect();
        let written = host.find_tree(tree).map_err(failed("read the merged tree"))?;
        let text = message.text();
        let commit = host
            .commit(None, &author, &author, &text, &written, &parents)
            .map_err(failed("write the commit"))?;
        let name = format!("refs/heads/{branch}");
        match host.reference(&name, commit, false, &message.subject) {
            Ok(_) => Ok((commit, tree)),
            Err(error) if error.code() == ErrorCode::Exists => {
                Err(LandError::BranchExists { name: branch.to_owned() })
            }
            Err(error) => Err(failed("make the branch")(error)),
        }
    }
}
