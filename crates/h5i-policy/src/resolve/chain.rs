//! The order in which profiles and layers are set.

use std::ops::Range;

use super::{ResolveError, unknown_profile};
use crate::document::Profile;
use crate::document::error::DocumentErrorKind;
use crate::document::read::{ReadError, did_you_mean};
use crate::layer::Layer;

/// The profile that all others extend in the end.
pub(super) const ROOT: &str = "default";

/// Deepest chain of profiles.
const DEEPEST: usize = 16;

/// One profile of one layer.
#[derive(Clone, Debug)]
pub(super) struct Step<'a> {
    /// The layer's place among the layers.
    pub(super) at: usize,
    pub(super) layer: &'a Layer,
    pub(super) name: &'a str,
    pub(super) profile: &'a Profile,
}

/// A profile and those it extends.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    /// From the one that extends nothing to the one that was asked for; within each, the layers
    /// that write it, weakest first.
    steps: Vec<Step<'a>>,
}

impl<'a> Chain<'a> {
    pub(super) fn of(layers: &'a [Layer], profile: &str) -> Result<Self, ResolveError> {
        let mut links: Vec<Vec<Step<'a>>> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let mut next = profile.to_owned();
        let mut named_by: Option<(&'a Layer, Range<usize>)> = None;
        loop {
            let refused = |kind, suggestion| match &named_by {
                Some((layer, span)) => {
                    let error = ReadError::new(span.clone(), kind).suggesting(suggestion);
                    ResolveError::Document(layer.document.error(error))
                }
                None => unknown_profile(layers, &next),
            };
            let link = link(layers, &next);
            if link.is_empty() {
                let known = super::profile_names(layers);
                let suggestion = did_you_mean(&next, known.iter().map(String::as_str));
                let kind = DocumentErrorKind::UnknownProfile { name: next.clone() };
                return Err(refused(kind, suggestion));
            }
            if let Some(first) = names.iter().position(|name| *name == next) {
                let mut profiles = names[first..].to_vec();
                profiles.push(next.clone());
                return Err(refused(DocumentErrorKind::ExtendsCircle { profiles }, None));
            }
            if names.len() == DEEPEST {
                return Err(refused(DocumentErrorKind::ExtendsTooDeep { limit: DEEPEST }, None));
            }
            names.push(next.clone());
            let parent = parent(&link)?;
            links.push(link);
            match parent {
                Some((layer, name, span)) => {
                    next = name;
                    named_by = Some((layer, span));
                }
                None if next == ROOT => break,
                None => {
                    next = ROOT.to_owned();
                    named_by = None;
                }
            }
        }
        Ok(Self { steps: links.into_iter().rev().flatten().collect() })
    }

    /// The steps whose word holds as it is.
    pub(super) fn believed(&self) -> impl Iterator<Item = Step<'a>> {
        self.steps.iter().filter(|step| !step.layer.only_tightens()).cloned()
    }

    /// The steps that may only tighten.
    pub(super) fn tightening(&self) -> impl Iterator<Item = Step<'a>> {
        self.steps.iter().filter(|step| step.layer.only_tightens()).cloned()
    }

    /// A profile that only a layer which may only tighten has: the person who asks for it by name
    /// has not read it.
    pub(super) fn unknown_to_the_person(&self) -> Option<Step<'a>> {
        self.tightening().find(|step| !self.believed().any(|other| other.name == step.name))
    }

    /// What the profile is for, in the words of its strongest believed layer, or else of the
    /// repository's.
    pub(super) fn purpose(&self) -> Option<String> {
        let asked = self.steps.last()?.name;
        let word = |step: Step<'a>| match step.name == asked {
            true => step.profile.purpose.clone(),
            false => None,
        };
        self.believed()
            .filter_map(word)
            .last()
            .or_else(|| self.tightening().filter_map(word).last())
    }
}

/// Every layer's part of one profile.
fn link<'a>(layers: &'a [Layer], name: &str) -> Vec<Step<'a>> {
    let part = |(at, layer): (usize, &'a Layer)| {
        let (name, profile) = layer.document.profiles.get_key_value(name)?;
        Some(Step { at, layer, name, profile })
    };
    layers.iter().enumerate().filter_map(part).collect()
}

type Parent<'a> = (&'a Layer, String, Range<usize>);

/// What a profile extends, by the word of its strongest believed layer.
fn parent<'a>(link: &[Step<'a>]) -> Result<Option<Parent<'a>>, ResolveError> {
    let stated = |step: &Step<'a>| {
        let (name, span) = step.profile.extends.clone()?;
        Some((step.layer, name, span))
    };
    let believed: Vec<&Step<'a>> = link.iter().filter(|step| !step.layer.only_tightens()).collect();
    if believed.is_empty() {
        return Ok(link.iter().rev().find_map(stated));
    }
    let parent = believed.iter().rev().find_map(|step| stated(step));
    let effective = parent.as_ref().map_or(ROOT, |(_, name, _)| name.as_str());
    for step in link.iter().filter(|step| step.layer.only_tightens()) {
        if let Some((name, span)) = &step.profile.extends
            && (name != effective || step.name == ROOT)
        {
            let error = ReadError::new(
                span.clone(),
                DocumentErrorKind::IdleKey {
                    key: "extends",
                    section: format!("[profile.{}]", step.name),
                    because: "in a repository's policy where the person has that profile",
                },
            );
            return Err(step.layer.document.error(error).into());
        }
    }
    Ok(parent)
}
