//! What an agent is told of the inside of a box, in the forms in which agents read such things.

/// The skill, as Claude Code reads it.
pub(crate) const SKILL: &str = include_str!("skill/SKILL.md");

/// Around the part of a file that is h5i's.
const BEGINS: &str = "<!-- h5i: begin -->\n";
const ENDS: &str = "<!-- h5i: end -->\n";

/// The part of an `AGENTS.md` that is h5i's: the skill without its front matter.
pub(crate) fn section() -> String {
    let body = SKILL.splitn(3, "---\n").nth(2).unwrap_or(SKILL);
    format!("{BEGINS}{}{ENDS}", body.trim_start_matches('\n'))
}

/// What a file with instructions of others becomes with the section: in the place of an earlier one,
/// else behind what there is. The rest stays byte for byte.
pub(crate) fn with_section(text: &str) -> String {
    let section = section();
    if let Some(start) = text.find(BEGINS)
        && let Some(length) = text.get(start..).and_then(|rest| rest.find(ENDS))
        && let (Some(before), Some(after)) =
            (text.get(..start), text.get(start + length + ENDS.len()..))
    {
        return format!("{before}{section}{after}");
    }
    let gap = match text {
        "" => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{section}")
}

#[cfg(test)]
mod tests {
    use super::{SKILL, section, with_section};

    #[test]
    fn the_skill_has_the_front_matter_that_makes_it_one() {
        let lines: Vec<&str> = SKILL.lines().collect();
        assert_eq!((lines[0], lines[1], lines[3]), ("---", "name: h5i", "---"));
        let description = lines[2].strip_prefix("description: ").expect("a description");
        assert!(description.len() <= 1024 && !description.contains(": "), "{description}");
        assert!(section().contains("\n# Working in an h5i box\n"), "{}", section());
        assert!(!section().contains("description:"));
    }

    #[test]
    fn what_others_wrote_stays_and_the_section_is_there_once() {
        let section = section();
        assert_eq!(with_section(""), section);
        for own in ["# Ours\n", "# Ours\n\nno end", "<!-- h5i: begin -->\nnever ended\n"] {
            let once = with_section(own);
            assert!(once.starts_with(own) && once.ends_with(&section), "{once}");
        }
        let old = "before\n<!-- h5i: begin -->\nold\n<!-- h5i: end -->\nafter\n";
        assert_eq!(with_section(old), format!("before\n{section}after\n"));
        let once = with_section("# Ours\n");
        assert_eq!(with_section(&once), once);
    }
}
